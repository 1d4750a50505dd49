//! Settings of a runtime.

use std::time::Duration;

use super::retention::Retention;
use crate::dead_letter::{LetterPrefix, no_prefix};
use crate::error::{Code, Error};
use crate::limits::DEFAULT_MAX_DELIVERIES;
use crate::store::{DispatcherCapabilityFilter, TagFilter};

/// What happens to an instance whose code has diverged from its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNondeterminism {
    /// It fails with a configuration failure that names the event.
    #[default]
    Fail,
    /// It is paused; resume it after the code has been corrected.
    Pause,
}

/// Settings of a runtime. Every default is meant for production.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Turns at once; 0 makes a node that runs activities only. A turn that is committed together
    /// with the end of its activity runs in the place of that one.
    pub orchestration_concurrency: usize,
    /// Activities at once; 0 makes a node that runs orchestrations only.
    pub worker_concurrency: usize,
    /// Executions kept in memory between turns; 0 replays every turn.
    pub resident_executions: usize,
    /// How long a turn holds its instance without renewal.
    pub orchestrator_lock_timeout: Duration,
    /// How long an activity is held without renewal.
    pub worker_lock_timeout: Duration,
    /// Deliveries of a turn or activity before it fails as poison.
    pub max_attempts: u32,
    /// How long this node offers work for unregistered names again before it fails it: a rolling
    /// deploy must not fail work.
    pub unregistered_timeout: Duration,
    /// What happens when a replay diverges from the recorded history.
    pub on_nondeterminism: OnNondeterminism,
    /// How long a cancelled activity may run before it is dropped.
    pub cancellation_grace: Duration,
    /// How often a node checks whether its running activities were cancelled on another node.
    pub cancellation_check_interval: Duration,
    /// Which activities this node takes.
    pub tag_filter: TagFilter,
    /// Name of this node; sessions belong to it. A random one by default.
    pub node_id: Option<String>,
    /// Sessions that this node may own at once; 0 takes no session-bound work.
    pub max_sessions: usize,
    /// How long a session is held without renewal.
    pub session_lock_timeout: Duration,
    /// A session without work for this long is released.
    pub session_idle_timeout: Duration,
    /// Which executions this node can replay.
    pub capabilities: DispatcherCapabilityFilter,
    /// What is kept of finished instances and old executions; everything by default.
    pub retention: Retention,
    /// What the ids of the dead letters of an instance begin with, by its id: a program with
    /// tenants lists those of one by it
    /// ([`DeadLetterQuery::id_prefix`](crate::client::DeadLetterQuery)). Nothing by default.
    pub dead_letter_prefix: LetterPrefix,
    /// How often this node renews the names of its orchestrations in the store, at most every six
    /// hours; `None` publishes none, and a server on the same store then refuses to start what only
    /// this node has. See [`published`](crate::published).
    pub publish_names_every: Option<Duration>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        RuntimeOptions {
            orchestration_concurrency: 512,
            worker_concurrency: 128,
            resident_executions: 4_096,
            orchestrator_lock_timeout: Duration::from_secs(10),
            worker_lock_timeout: Duration::from_secs(30),
            max_attempts: DEFAULT_MAX_DELIVERIES,
            unregistered_timeout: Duration::from_secs(15 * 60),
            on_nondeterminism: OnNondeterminism::Fail,
            cancellation_grace: Duration::from_secs(10),
            cancellation_check_interval: Duration::from_millis(500),
            tag_filter: TagFilter::DefaultOnly,
            node_id: None,
            max_sessions: 64,
            session_lock_timeout: Duration::from_secs(30),
            session_idle_timeout: Duration::from_secs(300),
            capabilities: DispatcherCapabilityFilter::for_current_build(),
            retention: Retention::default(),
            dead_letter_prefix: no_prefix,
            publish_names_every: Some(Duration::from_secs(60 * 60)),
        }
    }
}

impl RuntimeOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        let least = Duration::from_millis(10);
        for (name, value) in [
            ("orchestrator_lock_timeout", self.orchestrator_lock_timeout),
            ("worker_lock_timeout", self.worker_lock_timeout),
            ("session_lock_timeout", self.session_lock_timeout),
            ("cancellation_check_interval", self.cancellation_check_interval),
            ("publish_names_every", self.publish_names_every.unwrap_or(Duration::MAX)),
        ] {
            if value < least {
                let message = format!("{name} is {value:?}, but must be at least {least:?}");
                return Err(Error::new(Code::InvalidOption, message));
            }
        }
        self.retention.check()?;
        if self.max_attempts == 0 {
            let message = "max_attempts must be at least 1";
            return Err(Error::new(Code::InvalidOption, message));
        }
        if self.orchestration_concurrency == 0 && self.worker_concurrency == 0 {
            let message = "a node with orchestration_concurrency 0 and worker_concurrency 0 would do nothing";
            return Err(Error::new(Code::InvalidOption, message));
        }
        Ok(())
    }
}
