//! One activity.

use segno::{Context, Failure, Orchestration, RegistryBuilder};

use super::{Bench, Measuring, NOTHING, Workload, nothing};
use crate::closed_loop;

const HELLO: Orchestration<u32, u32> = Orchestration::new("hello");

/// One activity.
pub struct Hello;

async fn hello(ctx: Context, number: u32) -> Result<u32, Failure> {
    ctx.activity(NOTHING, number).await
}

impl Workload for Hello {
    fn name(&self) -> &'static str {
        "hello"
    }

    fn about(&self) -> &'static str {
        "instances with one activity"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        registry.orchestration(HELLO, hello).activity(NOTHING, nothing)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        let run = |client: segno::Client| async move { client.start(HELLO, 7).result().await.map(drop) };
        Box::pin(closed_loop::measure(bench, 1, run))
    }
}
