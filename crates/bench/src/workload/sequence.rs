//! Five activities, one after the other.

use segno::{Context, Failure, Orchestration, RegistryBuilder};

use super::{Bench, Measuring, NOTHING, Workload, nothing};
use crate::closed_loop;

const SEQUENCE: Orchestration<u32, u32> = Orchestration::new("sequence");
const ACTIVITIES: u32 = 5;

/// Five activities, one after the other.
pub struct Sequence;

async fn sequence(ctx: Context, mut number: u32) -> Result<u32, Failure> {
    for _ in 0..ACTIVITIES {
        number = ctx.activity(NOTHING, number).await?;
    }
    Ok(number)
}

impl Workload for Sequence {
    fn name(&self) -> &'static str {
        "sequence"
    }

    fn about(&self) -> &'static str {
        "instances with five activities, one after the other"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        registry.orchestration(SEQUENCE, sequence).activity(NOTHING, nothing)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        let run = |client: segno::Client| async move { client.start(SEQUENCE, 7).result().await.map(drop) };
        Box::pin(closed_loop::measure(bench, ACTIVITIES.into(), run))
    }
}
