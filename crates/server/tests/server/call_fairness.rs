//! Tenants that share the places of a node for calls: several with slow functions take all they can get,
//! and a call of another tenant is run at once all the same.

use std::sync::Arc;
use std::time::Duration;

use segno_api::instance::Status;
use segno_api::invocation::Invoke;
use segno_server::settings::{Authentication, Settings};
use segno_testkit::clock::VirtualClock;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Semaphore, mpsc};

use crate::push::two_workers;
use crate::stand::{PATIENCE, Stand, json_of, settings};

/// A server on whose clock nothing ever times out, and a signal for each slow call that has begun.
struct Crowded {
    stand: Stand,
    begun: UnboundedReceiver<()>,
    permits: Arc<Semaphore>,
}

impl Crowded {
    /// A server with a slow function and a prompt one.
    async fn new(change: impl FnOnce(&mut Settings), function: impl Fn(String) -> Value) -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let (called, begun) = mpsc::unbounded_channel();
        let url = two_workers(&permits, called).await;
        let mut settings = settings(Authentication::None);
        for name in ["late", "prompt"] {
            let declaration = serde_json::from_value(function(format!("{url}/{name}"))).unwrap();
            settings.functions.insert(name.parse().unwrap(), declaration);
        }
        change(&mut settings);
        Crowded { stand: Stand::on_clock(settings, VirtualClock::new()).await, begun, permits }
    }

    fn client(&self, tenant: &str) -> segno_api::Client {
        self.stand.client().scope("shop", tenant)
    }

    /// Has tenants call the slow function so often, until so many of their calls are under way.
    async fn fill(&mut self, tenants: usize, calls_each: usize, under_way: usize) {
        for tenant in 0..tenants {
            let client = self.client(&format!("greedy-{tenant}"));
            for number in 0..calls_each {
                let call = Invoke::new("late", json_of(&number));
                client.invoke(&call, Duration::ZERO).await.unwrap();
            }
        }
        for _ in 0..under_way {
            self.begun.recv().await.unwrap();
        }
    }

    /// A tenant that has nothing under way calls the prompt function.
    async fn is_prompt_for(&self, tenant: &str) {
        let called = self.client(tenant).invoke(&Invoke::new("prompt", json_of(&1)), PATIENCE).await.unwrap();
        assert_eq!(called.instance.unwrap().status, Status::Completed, "{tenant}");
    }
}

#[tokio::test]
async fn tenants_with_slow_functions_leave_places_of_a_node_to_others() {
    let http = |url| json!({ "executor": "http", "url": url, "allow_hosts": ["localhost"] });
    // Of 24 places 3 are reserved.
    let mut crowded = Crowded::new(|settings| settings.runtime.functions = 24, http).await;
    crowded.fill(3, 24, 21).await;
    for tenant in ["one", "two", "three"] {
        crowded.is_prompt_for(tenant).await;
    }
    assert!(crowded.begun.try_recv().is_err(), "no slow call took a reserved place");
    crowded.permits.add_permits(3 * 24);
    for _ in 21..3 * 24 {
        crowded.begun.recv().await.unwrap();
    }
}

#[tokio::test]
async fn tenants_with_slow_workers_leave_places_for_pushed_calls_to_others() {
    let secret = NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a shared secret").unwrap();
    let push = |url| {
        let push = json!({ "url": url, "secret": { "file": secret.path() }, "allow_hosts": ["localhost"] });
        json!({ "executor": "remote", "push": push })
    };
    // Of 128 places 32 are reserved, and 16 are for one function of a tenant.
    let mut crowded = Crowded::new(|_| {}, push).await;
    crowded.fill(10, 20, 96).await;
    for tenant in ["one", "two", "three"] {
        crowded.is_prompt_for(tenant).await;
    }
    assert!(crowded.begun.try_recv().is_err(), "no slow call took a reserved place");
    crowded.permits.add_permits(10 * 20);
    for _ in 96..10 * 20 {
        crowded.begun.recv().await.unwrap();
    }
}
