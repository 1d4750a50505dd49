//! Ten inline steps.

use segno::{Context, Failure, Orchestration, RegistryBuilder};

use super::{Bench, Measuring, Workload};
use crate::closed_loop;

const INLINE: Orchestration<u32, u32> = Orchestration::new("inline");
const STEPS: u32 = 10;

/// Ten inline steps.
pub struct Inline;

async fn inline(ctx: Context, mut number: u32) -> Result<u32, Failure> {
    for _ in 0..STEPS {
        number = ctx.run("add", move || async move { Ok(number + 1) }).await?;
    }
    Ok(number)
}

impl Workload for Inline {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn about(&self) -> &'static str {
        "instances with ten inline steps"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        registry.orchestration(INLINE, inline)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        let run = |client: segno::Client| async move { client.start(INLINE, 7).result().await.map(drop) };
        Box::pin(closed_loop::measure(bench, STEPS.into(), run))
    }
}
