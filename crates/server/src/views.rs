//! Views of the runbooks' tables, on a store in PostgreSQL: made when a server starts, and for each
//! version that is published.

use segno::store::Store;
use segno_actions::schedule::Zones;
use segno_postgres::{ColumnType, View, ViewColumn, ViewCondition, ViewError, ViewValue, create_views};
use segno_runbook::rows::Table;
use segno_runbook::tables::{
    ColumnKind, ColumnLayout, ColumnPlace, PublishedVersion, TableLayout, data_tables, fixed_tables,
};
use segno_stores::StoreUrl;

use crate::settings::{Settings, SettingsError};

/// Where the views are.
#[derive(Clone)]
pub struct RunbookViews {
    /// URL of the store's database.
    url: String,
    schema: String,
}

/// Why views could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunbookViewError {
    /// The database.
    #[error(transparent)]
    Views(#[from] ViewError),
    /// The published versions could not be read.
    #[error("the published runbooks cannot be read: {0}")]
    Store(#[from] segno::store::ProviderError),
}

impl RunbookViews {
    /// The views that the settings ask for.
    pub fn of(settings: &Settings) -> Result<Option<Self>, SettingsError> {
        let Some(schema) = settings.runbooks.views.clone() else { return Ok(None) };
        match settings.store_url()? {
            StoreUrl::Postgres(url) => Ok(Some(RunbookViews { url, schema })),
            // Refused by the check of the settings.
            StoreUrl::Embedded(_) | StoreUrl::Memory => Ok(None),
        }
    }

    /// Makes the views of all tables, when a server starts. Views of an older build that cannot be
    /// replaced, because others use them, do not keep it from starting.
    pub async fn make_all(&self, store: &dyn Store, zones: &Zones) -> Result<(), RunbookViewError> {
        let mut tables = fixed_tables();
        tables.extend(data_tables(store, zones, None).await?);
        match self.make(tables).await {
            Ok(made) => tracing::info!(made, "the views of runbooks are as they should be"),
            Err(RunbookViewError::Views(error)) if error.leaves_older_views() => {
                tracing::warn!(%error, "the views of runbooks are those of an older build");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes the view of a version that was published.
    pub async fn make_for(
        &self,
        store: &dyn Store,
        zones: &Zones,
        version: PublishedVersion<'_>,
    ) -> Result<usize, RunbookViewError> {
        self.make(data_tables(store, zones, Some(version)).await?).await
    }

    async fn make(&self, tables: Vec<TableLayout>) -> Result<usize, RunbookViewError> {
        let views: Vec<View> = tables.into_iter().map(view).collect();
        Ok(create_views(&self.url, &self.schema, &views).await?)
    }
}

/// A table as a view over records.
fn view(table: TableLayout) -> View {
    let of_batch = |name: &str| ViewValue::Parent(vec![name.to_owned()]);
    let conditions = match table.version {
        None => Vec::new(),
        Some(filter) => vec![
            ViewCondition { value: of_batch("runbook_name"), one_of: filter.runbooks },
            ViewCondition { value: of_batch("runbook_version"), one_of: vec![filter.version.to_string()] },
        ],
    };
    let column = |column: ColumnLayout| ViewColumn {
        name: column.name,
        value: match column.place {
            ColumnPlace::Namespace => ViewValue::IdPart(1),
            ColumnPlace::Tenant => ViewValue::IdPart(2),
            ColumnPlace::Row(path) => ViewValue::Body(path),
            ColumnPlace::Batch(name) => of_batch(name),
        },
        kind: match column.kind {
            ColumnKind::Text => ColumnType::Text,
            ColumnKind::Integer => ColumnType::Integer,
            ColumnKind::Boolean => ColumnType::Boolean,
            ColumnKind::Time => ColumnType::Time,
            ColumnKind::Json => ColumnType::Json,
        },
        absent: column.absent.map(str::to_owned),
    };
    View {
        name: table.name,
        kind: table.kind.to_owned(),
        parent: (!conditions.is_empty()).then(|| Table::Batches.name().to_owned()),
        columns: table.columns.into_iter().map(column).collect(),
        conditions,
    }
}
