//! `segno store copy`: one store becomes another.

use segno_stores::{FilledBy, StoreUrl, fill};

use super::{Moved, check_target};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Does it.
pub async fn run(from: &StoreUrl, to: &StoreUrl, output: &Output) -> Result<(), Failure> {
    if from == to {
        return Err(Failure::Refused(format!("{from} cannot be copied to itself")));
    }
    check_target(from, to)?;
    let source = from.source().await?;
    let mut meter = Meter::new(output, Some(source.instance_count().await?));
    let target = to.open_for_import(FilledBy::Copy).await?;
    let mut export = source.export().await?;
    let name = to.to_string();
    let content = fill(&mut *export, &*target, &name, &mut |progress| meter.transfer(progress)).await?;
    drop(meter);
    let moved = Moved { from: from.to_string(), to: name, content: content.into() };
    output.print(&moved, moved.table())
}
