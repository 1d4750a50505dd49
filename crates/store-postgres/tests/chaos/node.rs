//! A process that runs orchestrations until it is killed.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions};
use segno_postgres::PostgresStore;

/// Tells a process that it is a node, and where the database is.
const URL: &str = "SEGNO_CHAOS_NODE_URL";

/// A short one, so that what a node leaves behind is taken over soon.
pub const LOCK: Duration = Duration::from_secs(2);

pub const CHAIN: Orchestration<u32, u32> = Orchestration::new("chain");
const ADD_ONE: Activity<u32, u32> = Activity::new("add-one");

pub fn registry() -> Registry {
    let chain = async |ctx: Context, number: u32| -> Result<u32, Failure> {
        let number = ctx.activity(ADD_ONE, number).await?;
        ctx.sleep(Duration::from_millis(50)).await?;
        let number = ctx.activity(ADD_ONE, number).await?;
        ctx.activity(ADD_ONE, number).await
    };
    let add_one = async |_: ActivityContext, number: u32| -> Result<u32, Failure> { Ok(number + 1) };
    Registry::builder().orchestration(CHAIN, chain).activity(ADD_ONE, add_one).build().unwrap()
}

/// The process. Not a test by itself.
#[test]
fn node_that_is_killed() {
    let Ok(url) = std::env::var(URL) else { return };
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(
        async {
            loop {
                // The database may be down when the node starts.
                let Ok(store) = PostgresStore::open(&url).await else {
                    crate::pause(Duration::from_millis(100)).await;
                    continue;
                };
                let options = RuntimeOptions {
                    orchestrator_lock_timeout: LOCK,
                    worker_lock_timeout: LOCK,
                    // Restarts of the database must not make an activity give up.
                    max_attempts: 1_000,
                    ..RuntimeOptions::default()
                };
                let runtime = Runtime::builder(store).registry(registry()).options(options).start().await;
                let _running = runtime.unwrap();
                std::future::pending::<()>().await;
            }
        },
    );
}

/// A node in a process of its own.
pub struct Node {
    child: Child,
    url: String,
}

impl Node {
    pub fn start(url: &str) -> Node {
        Node { child: spawn(url), url: url.to_owned() }
    }

    /// Kills it without a word and starts another one.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.url);
    }

    /// Whether it is still the process that was started.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Freezes it, or lets it go on.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "node::node_that_is_killed", "--nocapture"])
        .env(URL, url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
