//! `segno settings` and `segno usage`: how a server is set up, and what its store takes on the disk.

use segno_api::system::StoreFigures;

use super::arguments::Nothing;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows, Table, size};

/// The settings of the server, with where each comes from.
pub async fn settings(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let page = Page::whole(arguments.connection.client(output)?.settings().await?.settings);
    let mut rows = Rows::new(["setting", "value", "origin"]);
    for line in &page.items {
        rows.add([line.setting.clone(), line.value.clone(), line.origin.clone()]);
    }
    output.list(&page, &rows)
}

/// What the store takes.
pub async fn usage(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let figures = arguments.connection.client(output)?.store_figures().await?;
    let StoreFigures { store, place, damage, .. } = &figures;
    let mut table = Table::default().line("store", store).line("place", place);
    for (name, figure) in [
        ("data", figures.bytes),
        ("of which log", figures.log_bytes),
        ("disk", figures.disk_bytes),
        ("free on the disk", figures.disk_free_bytes),
    ] {
        if let Some(figure) = figure {
            table = table.line(name, size(figure));
        }
    }
    if let Some(damage) = damage {
        table = table.line("damage", damage);
    }
    output.print(&figures, table)
}
