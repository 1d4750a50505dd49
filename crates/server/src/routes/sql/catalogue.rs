//! What queries may name.

use axum::Json;
use segno_api::sql::{SqlCatalogue, SqlColumn, SqlShipped, SqlTable};
use segno_ledger::sql::{ColumnInfo, Pushdown, TableInfo, function_names};

use super::{shipped, tables};
use crate::app::Tenant;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// The tables with their columns, the functions that queries may call, and the shipped queries.
#[utoipa::path(get, path = "/v1/sql", tag = "sql", params(ScopeParameters), responses(
    (status = 200, body = SqlCatalogue),
))]
pub async fn catalogue(_: Tenant) -> Result<Json<SqlCatalogue>, Refusal> {
    Ok(Json(SqlCatalogue {
        tables: tables::INFOS.iter().map(|info| table(info)).collect(),
        functions: function_names().map(str::to_owned).collect(),
        shipped: shipped::SHIPPED.iter().map(shown).collect(),
    }))
}

fn table(info: &TableInfo) -> SqlTable {
    SqlTable {
        name: info.name.to_owned(),
        description: info.doc.to_owned(),
        columns: info.columns.iter().map(column).collect(),
    }
}

fn column(info: &ColumnInfo) -> SqlColumn {
    let pushed: &[&str] = match info.pushdown {
        Pushdown::No => &[],
        Pushdown::Equal => &["="],
        Pushdown::Prefix => &["=", "prefix"],
        Pushdown::Range => &["range"],
    };
    SqlColumn {
        name: info.name.to_owned(),
        kind: info.kind.name().to_owned(),
        description: info.doc.to_owned(),
        pushed: pushed.iter().copied().map(str::to_owned).collect(),
    }
}

fn shown(shipped: &shipped::Shipped) -> SqlShipped {
    SqlShipped {
        name: shipped.name.to_owned(),
        description: shipped.doc.to_owned(),
        query: shipped.text.to_owned(),
    }
}
