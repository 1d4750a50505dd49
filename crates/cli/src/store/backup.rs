//! `segno store backup`: everything of this moment in one file.

use std::path::Path;

use segno_stores::{IfThere, StoreUrl, back_up};

use super::Moved;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Does it.
pub async fn run(store: &StoreUrl, file: &Path, if_there: IfThere, output: &Output) -> Result<(), Failure> {
    if store.has_inside(file) {
        let file = file.display();
        let problem = format!("{file} is inside the store; choose a file outside of its directory");
        return Err(Failure::Refused(problem));
    }
    let source = store.source().await?;
    let mut meter = Meter::new(output, Some(source.instance_count().await?));
    let mut export = source.export().await?;
    let content = back_up(&mut *export, file, if_there, &mut |progress| meter.transfer(progress)).await?;
    drop(meter);
    let moved = Moved { from: store.to_string(), to: file.display().to_string(), content: content.into() };
    output.print(&moved, moved.table())
}
