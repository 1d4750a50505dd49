//! Five activities at once.

use segno::{Context, Failure, Orchestration, RegistryBuilder, try_join_all};

use super::{Bench, Measuring, NOTHING, Workload, nothing};
use crate::closed_loop;

const FANOUT: Orchestration<u32, u32> = Orchestration::new("fanout");
const ACTIVITIES: u32 = 5;

/// Five activities at once.
pub struct Fanout;

async fn fanout(ctx: Context, number: u32) -> Result<u32, Failure> {
    let numbers = try_join_all((0..ACTIVITIES).map(|n| ctx.activity(NOTHING, number + n))).await?;
    Ok(numbers.into_iter().sum())
}

impl Workload for Fanout {
    fn name(&self) -> &'static str {
        "fanout"
    }

    fn about(&self) -> &'static str {
        "instances with five activities at once"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        registry.orchestration(FANOUT, fanout).activity(NOTHING, nothing)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        let run = |client: segno::Client| async move { client.start(FANOUT, 7).result().await.map(drop) };
        Box::pin(closed_loop::measure(bench, ACTIVITIES.into(), run))
    }
}
