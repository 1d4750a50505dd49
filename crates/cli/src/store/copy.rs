//! `segno store copy`: one store becomes another, with its ledger where that is in directories.

use segno_stores::{FilledBy, FindLedger, LedgerContent, LedgerOrigin, StoreUrl, fill_unfinished};

use super::ledger::{Finder, ShownLedger, Target};
use super::{Moved, check_target};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Fills the store and the ledger, reads both back, and tells whether the copy is complete.
pub async fn run(
    from: &StoreUrl,
    to: &StoreUrl,
    ledger_url: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    if from == to {
        return Err(Failure::Refused(format!("{from} cannot be copied to itself")));
    }
    check_target(from, to)?;
    let source = from.source().await?;
    let mut meter = Meter::new(output, Some(source.instance_count().await?));
    let target = to.open_for_import(FilledBy::Copy).await?;
    let export = source.export().await?;
    let mut seen = Seen { export, finder: Finder::new(from) };
    let name = to.to_string();
    let mut progress = |progress: segno_stores::Progress<'_>| meter.transfer(progress);
    let filled = fill_unfinished(&mut seen, &*target, &name, &mut progress).await?;
    let ledger = match seen.finder.found().await? {
        LedgerOrigin::None => LedgerContent::None,
        LedgerOrigin::Elsewhere(place) => LedgerContent::Elsewhere { place },
        LedgerOrigin::Source(mut source) => {
            let mut target = Target::open(to, ledger_url).await?;
            source.send(&mut target).await?;
            target.finish()?
        }
    };
    let content = filled.finish().await?;
    drop(meter);
    let ledger = ShownLedger::of(ledger);
    ledger.warn("the copy");
    let moved = Moved { from: from.to_string(), to: name, content: content.into(), ledger };
    output.print(&moved, moved.table())
}

/// A store that is read, with the record that tells where its ledger is.
struct Seen<'s> {
    export: Box<dyn segno::store::Export + 's>,
    finder: Finder,
}

#[async_trait::async_trait]
impl segno::store::Export for Seen<'_> {
    async fn next_items(&mut self) -> Result<Vec<segno::store::ContentItem>, segno::store::ProviderError> {
        let items = self.export.next_items().await?;
        items.iter().for_each(|item| self.finder.see(item));
        Ok(items)
    }
}
