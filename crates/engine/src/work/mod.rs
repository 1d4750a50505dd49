//! Activities for workers outside the process.
//!
//! A node runs activities that are registered with it. A [`WorkQueue`] delivers the rest: a server fetches on behalf of
//! remote workers, in any language, and commits their answers. There is no [`Runtime`](crate::Runtime) in between and
//! nothing is kept in memory: what an answer needs is in the [`Lease`], so any process on the same store can take it.
//!
//! Calls are routed by [tag](crate::context::ActivityCall::tag). A fetch names the tags it serves and leases what it gets:
//!
//! | the worker | call | and then |
//! |---|---|---|
//! | requests work | [`fetch`](WorkQueue::fetch) | the oldest activities with one of the tags are its own until the leases end |
//! | has a result | [`complete`](WorkQueue::complete) | the orchestration continues |
//! | has failed | [`fail`](WorkQueue::fail) | the retry policy of the call decides |
//! | needs longer | [`heartbeat`](WorkQueue::heartbeat) | the lease is extended, progress is stored, or the worker gets the order to stop |
//! | goes away | [`release`](WorkQueue::release) | another worker gets the work, and nothing is counted |
//! | dies | | the lease ends, another worker gets the work, and a delivery is counted |
//!
//! - An answer under a lease that is not valid changes nothing and gets
//!   [`lease-lost`](crate::Code::LeaseLost). At most one answer counts.
//! - A lease **outlives the process** that issued it ([`LockLife::Durable`]): after a restart of a server it is valid as before, and
//!   any process on the same store takes its heartbeats and its answer.
//! - With a **timeout**, an attempt has failed at the first heartbeat after its end, and no lease is extended beyond that. The lock
//!   itself lasts 15 seconds longer, so that a late result still counts if the attempt has not been ended. A worker that
//!   sends nothing at all does not fail the attempt but is replaced, as if it had died.
//! - With a **heartbeat timeout**, no lease is longer than the silence that the call allows.
//! - **Poison** (too many deliveries) and **unreadable** activities are dealt with as by a node, while fetching.
//! - Work that is bound to a **session** stays with nodes; it is not delivered here.
//!
//! ```
//! use std::time::Duration;
//! use segno::store::memory::MemoryStore;
//! use segno::work::{FetchWork, LockLife, TagFilter, WorkQueue};
//! use segno::{Activity, Context, Failure, Orchestration, Payload, Registry, Runtime};
//!
//! const RENDER: Activity<String, String> = Activity::new("render");
//! const POSTER: Orchestration<String, String> = Orchestration::new("poster");
//!
//! async fn poster(ctx: Context, title: String) -> Result<String, Failure> {
//!     ctx.activity(RENDER, title).tag("gpu").await
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let registry = Registry::builder().orchestration(POSTER, poster).build()?;
//! let node = Runtime::builder(store.clone()).registry(registry).start().await?;
//! node.client().start(POSTER, "Sunrise".to_owned()).id("p1").await?;
//!
//! // Elsewhere, with the same store and without the code of the orchestration:
//! let queue = WorkQueue::new(store);
//! let request = FetchWork {
//!     tags: TagFilter::tags(["gpu"]),
//!     max_items: 10,
//!     lease: Duration::from_secs(30),
//!     wait: Duration::from_secs(10),
//!     life: LockLife::Durable,
//! };
//! for leased in queue.fetch(request).await? {
//!     assert_eq!((leased.activity.name.as_str(), leased.delivery), ("render", 1));
//!     let title: String = leased.activity.input.decode()?;
//!     queue.complete(&leased.lease, Payload::encode(&format!("{title}.png"))?).await?;
//! }
//! assert_eq!(node.client().result(POSTER, "p1").await?, "Sunrise.png");
//! # Ok(())
//! # }
//! ```

pub(crate) mod delivery;
pub(crate) mod ending;
mod fetch;
mod heartbeat;
mod lease;
pub(crate) mod progress;
mod queue;

pub use fetch::{FetchWork, LeasedActivity};
pub use heartbeat::{Heartbeat, StopReason};
pub use lease::Lease;
pub use progress::LastProgress;
pub use queue::{WorkQueue, WorkQueueBuilder};

pub use crate::store::{LockLife, TagFilter, TagPrefixes};
