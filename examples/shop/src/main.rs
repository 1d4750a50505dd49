//! A server with your own workflows: `shop dev`, `shop serve`, and every other verb of `segno`.

use std::process::ExitCode;

use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry};
use segno_cli::Program;

const ORDER: Orchestration<u32, String> = Orchestration::new("order");
const CHARGE: Activity<u32, String> = Activity::new("charge");

async fn order(ctx: Context, cents: u32) -> Result<String, Failure> {
    let receipt = ctx.activity(CHARGE, cents).attempts(5).await?;
    Ok(format!("{receipt}, shipped"))
}

async fn charge(_ctx: ActivityContext, cents: u32) -> Result<String, Failure> {
    Ok(format!("charged {cents} cents"))
}

async fn total(_ctx: ActivityContext, prices: Vec<u32>) -> Result<u32, Failure> {
    Ok(prices.iter().sum())
}

fn main() -> ExitCode {
    Program::new("shop")
        .registry(Registry::builder().orchestration(ORDER, order).activity(CHARGE, charge))
        .functions(|functions| functions.rust("total", total))
        .setting("retention.finished_hours", "720")
        .main()
}
