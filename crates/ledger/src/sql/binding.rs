//! Values of one table that constrain another one (a semi-join reduction): in `… FROM instances i JOIN events e ON
//! e.instance = i.id`, events are read of the instances that were fetched, and not of all.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, Query, Select, Visit, Visitor};

use super::plan::Fetch;
use super::scope::{Condition, Resolved, Scope};
use super::table::{ColumnInfo, Pushdown, Tables, Test};

/// A column whose values are among those of a query over tables that are fetched before.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The column.
    pub column: &'static ColumnInfo,
    /// The query for its values.
    pub sql: String,
    /// The tables that the query reads.
    pub sources: BTreeSet<&'static str>,
}

/// What the conditions of a SELECT bind, with the place of the reference that is bound.
pub fn find(conditions: &[Condition], scope: &Scope, tables: &Tables) -> Vec<(usize, Binding)> {
    let mut found = Vec::new();
    for condition in conditions {
        match &condition.expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                let (Some(one), Some(other)) = (scope.resolve(left), scope.resolve(right)) else { continue };
                found.extend(of_columns(one, (other, right), condition, conditions, scope));
                found.extend(of_columns(other, (one, left), condition, conditions, scope));
            }
            Expr::InSubquery { expr, subquery, negated: false } => {
                let Some(of) = scope.resolve(expr).filter(|of| may_bind(*of, condition)) else { continue };
                if let Some(sources) = sources(subquery, tables) {
                    let sql = format!("SELECT DISTINCT * FROM ({subquery})");
                    found.push((of.factor, Binding { column: of.column, sql, sources }));
                }
            }
            _ => {}
        }
    }
    found
}

fn may_bind(of: Resolved, condition: &Condition) -> bool {
    matches!(of.column.pushdown, Pushdown::Equal | Pushdown::Prefix)
        && condition.only.is_none_or(|only| only == of.factor)
}

/// The binding of a column by one of another reference.
fn of_columns(
    of: Resolved,
    (by, name): (Resolved, &Expr),
    condition: &Condition,
    conditions: &[Condition],
    scope: &Scope,
) -> Option<(usize, Binding)> {
    if of.factor == by.factor || !may_bind(of, condition) || of.column.kind != by.column.kind {
        return None;
    }
    let factor = scope.factors.get(by.factor)?;
    let table = factor.table?.name;
    let mut sql = format!("SELECT DISTINCT {name} FROM {table} AS {}", quoted(&factor.alias));
    let own = conditions.iter().filter(|other| {
        other.only.is_none_or(|only| only == by.factor) && is_about(&other.expr, by.factor, scope)
    });
    for (number, own) in own.enumerate() {
        sql.push_str(if number == 0 { " WHERE (" } else { " AND (" });
        sql.push_str(&own.expr.to_string());
        sql.push(')');
    }
    Some((of.factor, Binding { column: of.column, sql, sources: BTreeSet::from([table]) }))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a condition speaks of one reference alone.
fn is_about(expr: &Expr, factor: usize, scope: &Scope) -> bool {
    struct Names<'a>(&'a Scope, usize);
    impl Visitor for Names<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_name = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let is_own = self.0.resolve(expr).is_some_and(|resolved| resolved.factor == self.1);
            if !is_name || is_own { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    expr.visit(&mut Names(scope, factor)).is_continue()
}

/// The tables of a subquery whose rows are the same each time that it is evaluated.
fn sources(query: &Query, tables: &Tables) -> Option<BTreeSet<&'static str>> {
    struct Sources<'a>(&'a Tables, BTreeSet<&'static str>);
    impl Visitor for Sources<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if query.limit_clause.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let factors = Scope::of(select, self.0).factors;
            self.1.extend(factors.iter().filter_map(|factor| Some(factor.table?.name)));
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("random") => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let mut found = Sources(tables, BTreeSet::new());
    match query.visit(&mut found) {
        ControlFlow::Continue(()) => Some(found.1),
        ControlFlow::Break(()) => None,
    }
}

/// Puts tables first of which few rows are needed, and keeps the bindings by tables that are fetched before.
pub fn order(fetches: &mut [Fetch]) {
    fetches.sort_by_key(cost);
    let mut before = BTreeSet::new();
    for fetch in fetches {
        for reading in &mut fetch.readings {
            reading.bindings.retain(|binding| binding.sources.is_subset(&before));
        }
        before.insert(fetch.table.name);
    }
}

/// How many rows will be read, as a guess: 0 for few.
fn cost(fetch: &Fetch) -> u8 {
    let of_reading = |reading: &super::plan::Reading| {
        let pushed = reading.conjuncts.iter().flat_map(|conjunct| {
            conjunct.any_of.iter().filter(|test| conjunct.of.column.pushdown.takes(test))
        });
        let costs = pushed.map(|test| match test {
            Test::Equals(_) => 0,
            Test::Prefix(_) | Test::Within { .. } => 1,
        });
        let limited = reading.limit.map(|_| 1);
        let bound = (!reading.bindings.is_empty()).then_some(3);
        costs.chain(limited).chain(bound).min().unwrap_or(2)
    };
    fetch.readings.iter().map(of_reading).max().unwrap_or(2)
}
