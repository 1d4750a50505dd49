//! Which columns and rows of each table are fetched: a superset of what the query can see.
//!
//! Columns: those whose names are words of the query, or all of a SELECT that has `*`. Rows: each reference is read
//! with the conditions of its own SELECT that speak of one column each. References to one table share what was
//! fetched, so rows of one reference are there for the others: more than needed, which is harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, JoinConstraint,
    JoinOperator, LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Visit, Visitor,
};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::binding::{self, Binding};
use super::check::{self, single, unquoted};
use super::conjunct::{self, Conjunct};
use super::constant::{self, Evaluate, literal};
use super::error::SqlError;
use super::functions;
use super::scope::Scope;
use super::table::{TableInfo, Tables};
use super::text;
use super::value::Value;

/// What is to be done for a query.
#[derive(Debug)]
pub struct Plan {
    /// The query as SQLite evaluates it.
    pub sql: String,
    /// The names that it gives by WITH.
    pub names: Vec<String>,
    /// What is fetched, one for each table.
    pub fetches: Vec<Fetch>,
}

/// What is fetched of a table.
#[derive(Debug)]
pub struct Fetch {
    /// The table.
    pub table: &'static TableInfo,
    /// The columns.
    pub columns: Vec<&'static str>,
    /// One for each reference, without repetitions. With more than one, rows are told apart by their key.
    pub readings: Vec<Reading>,
}

/// What one reference needs.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The name of the reference.
    pub alias: String,
    /// What is true of all rows.
    pub conjuncts: Vec<Conjunct>,
    /// Values of a column that come from another table.
    pub bindings: Vec<Binding>,
    /// So many rows are enough.
    pub limit: Option<u64>,
}

impl Reading {
    fn is_whole(&self) -> bool {
        self.conjuncts.is_empty() && self.bindings.is_empty() && self.limit.is_none()
    }
}

/// Plans a query whose answer has at most `max_rows` rows.
///
/// # Errors
/// Says what of the query is not allowed.
pub fn plan(
    text: &str,
    tables: &Tables,
    max_rows: usize,
    evaluator: &dyn Evaluate,
) -> Result<Plan, SqlError> {
    let mut query = text::parse(text)?;
    let names = check::check(&query, tables)?.0;
    constant::fold(&mut query, tables, evaluator);
    let sql = query.to_string();
    // What SQLite gets has to be what was analysed.
    let again = text::parse(&sql);
    if again.ok().as_deref() != Some(&*query) {
        return Err(SqlError::Refused(
            "the query cannot be read without doubt; write it in another way".to_owned(),
        ));
    }
    let mut planner = Planner {
        tables,
        wanted: words(&sql),
        whole: BTreeSet::new(),
        limits: BTreeMap::new(),
        found: Vec::new(),
    };
    planner.limit(&query, Some(max_rows as u64 + 1));
    let _ = query.visit(&mut planner);
    let Planner { wanted, whole, found, .. } = planner;
    let mut fetches: Vec<Fetch> = Vec::new();
    for (table, reading) in found {
        match fetches.iter_mut().find(|fetch| fetch.table.name == table.name) {
            Some(fetch) => fetch.readings.push(reading),
            None => {
                let is_wanted = |name: &str| whole.contains(table.name) || wanted.contains(name);
                let columns = table.columns.iter().map(|column| column.name).filter(|name| is_wanted(name));
                fetches.push(Fetch { table, columns: columns.collect(), readings: vec![reading] });
            }
        }
    }
    fetches.iter_mut().for_each(Fetch::settle);
    binding::order(&mut fetches);
    Ok(Plan { sql, names, fetches })
}

impl Fetch {
    /// Leaves out readings whose rows others have.
    fn settle(&mut self) {
        if let Some(whole) = self.readings.iter().position(Reading::is_whole) {
            self.readings = vec![self.readings.swap_remove(whole)];
        }
        if self.readings.len() > 1 {
            let missing = self.table.key.iter().filter(|key| !self.columns.contains(key));
            let missing: Vec<&'static str> = missing.copied().collect();
            self.columns.extend(missing);
        }
    }
}

/// All words of a query in lowercase letters, and with them all columns that it can name.
fn words(sql: &str) -> BTreeSet<String> {
    let tokens = Tokenizer::new(&SQLiteDialect {}, sql).tokenize().unwrap_or_default();
    let words = tokens.into_iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    });
    words.collect()
}

struct Planner<'a> {
    tables: &'a Tables,
    wanted: BTreeSet<String>,
    /// Tables of which all columns are fetched.
    whole: BTreeSet<&'static str>,
    /// How many rows a SELECT needs, by its address.
    limits: BTreeMap<usize, u64>,
    found: Vec<(&'static TableInfo, Reading)>,
}

impl Visitor for Planner<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.limit(query, None);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let scope = Scope::of(select, self.tables);
        if has_wildcard(select) || is_natural(select) {
            self.whole.extend(scope.factors.iter().filter_map(|factor| Some(factor.table?.name)));
        }
        let conditions = Scope::conditions(select);
        let mut conjuncts = vec![Vec::new(); scope.factors.len()];
        for condition in &conditions {
            match conjunct::read(&condition.expr, &scope) {
                Some(read) if condition.only.is_none_or(|only| only == read.of.factor) => {
                    conjuncts[read.of.factor].push(read);
                }
                _ => {}
            }
        }
        let bindings = binding::find(&conditions, &scope, self.tables);
        for (place, (factor, conjuncts)) in scope.factors.iter().zip(conjuncts).enumerate() {
            let Some(table) = factor.table else { continue };
            let bindings = bindings.iter().filter(|(of, _)| *of == place).map(|(_, binding)| binding.clone());
            let reading = Reading {
                alias: factor.alias.clone(),
                conjuncts,
                bindings: bindings.collect(),
                limit: self.limits.get(&std::ptr::from_ref(select).addr()).copied(),
            };
            self.found.push((table, reading));
        }
        ControlFlow::Continue(())
    }
}

impl Planner<'_> {
    /// Notes how many rows of its one table a query needs, if its conditions leave none of them out and its order is
    /// that of the scan.
    fn limit(&mut self, query: &Query, answer: Option<u64>) {
        let SetExpr::Select(select) = &*query.body else { return };
        let Some(rows) = wanted_rows(query, answer) else { return };
        let scope = Scope::of(select, self.tables);
        let [factor] = scope.factors.as_slice() else { return };
        let Some(table) = factor.table else { return };
        let is_plain = matches!(select.distinct, None | Some(Distinct::All))
            && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
            && select.having.is_none()
            && select.named_window.is_empty()
            && select.projection.iter().all(is_of_one_row);
        let conditions = Scope::conditions(select);
        let is_read = conditions.iter().all(|condition| conjunct::read(&condition.expr, &scope).is_some());
        if is_plain && is_read && is_in_order(query, select, &scope, table) {
            let place = std::ptr::from_ref::<Select>(select).addr();
            let limit = self.limits.entry(place).or_insert(rows);
            *limit = rows.min(*limit);
        }
    }
}

/// How many rows a query needs of its source.
fn wanted_rows(query: &Query, answer: Option<u64>) -> Option<u64> {
    let number = |expr: &Expr| match literal(expr) {
        Some(Value::Integer(number)) => u64::try_from(number).ok(),
        _ => None,
    };
    let (limit, offset) = match &query.limit_clause {
        None => (None, Some(0)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let limit = match limit {
                Some(limit) => Some(number(limit)?),
                None => None,
            };
            (limit, offset.as_ref().map_or(Some(0), |offset| number(&offset.value)))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(number(limit)?), number(offset)),
        Some(_) => return None,
    };
    let rows = limit.into_iter().chain(answer).min()?;
    rows.checked_add(offset?)
}

/// Whether an item of a SELECT is made of one row: without aggregates and window functions.
fn is_of_one_row(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            let mut finder = Aggregates;
            expr.visit(&mut finder).is_continue()
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::ExprWithAliases { .. } => false,
    }
}

struct Aggregates;

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let is_scalar = single(&function.name).is_some_and(|name| functions::is_scalar(&name));
        let has_star = matches!(&function.args, FunctionArguments::List(list) if list.args.iter().any(|argument| {
            matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard))
        }));
        if is_scalar && !has_star && function.over.is_none() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Whether the order of a query is that in which its table is read.
fn is_in_order(query: &Query, select: &Select, scope: &Scope, table: &TableInfo) -> bool {
    let Some(order_by) = &query.order_by else { return true };
    let OrderByKind::Expressions(by) = &order_by.kind else { return false };
    let [by] = by.as_slice() else { return false };
    let Some(resolved) = scope.resolve(&by.expr) else { return false };
    // ORDER BY takes names that the SELECT gives before those of columns.
    let is_renamed = select.projection.iter().any(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => unquoted(alias).eq_ignore_ascii_case(resolved.column.name),
        _ => false,
    });
    let is_descending = by.options.sort == Some(sqlparser::ast::OrderBySort::Desc)
        && by.options.nulls_first.is_none()
        && by.with_fill.is_none();
    is_descending && !is_renamed && table.newest_first == Some(resolved.column.name)
}

fn has_wildcard(select: &Select) -> bool {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    select.projection.iter().any(is_wildcard)
}

fn is_natural(select: &Select) -> bool {
    fn of(from: &sqlparser::ast::TableWithJoins) -> bool {
        let nested = |factor: &TableFactor| match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => of(table_with_joins),
            _ => false,
        };
        nested(&from.relation)
            || from.joins.iter().any(|join| {
                use JoinConstraint::Natural;
                let is_natural = matches!(
                    join.join_operator,
                    JoinOperator::Join(Natural)
                        | JoinOperator::Inner(Natural)
                        | JoinOperator::Left(Natural)
                        | JoinOperator::LeftOuter(Natural)
                        | JoinOperator::Right(Natural)
                        | JoinOperator::RightOuter(Natural)
                        | JoinOperator::FullOuter(Natural)
                        | JoinOperator::CrossJoin(Natural)
                );
                is_natural || nested(&join.relation)
            })
    }
    select.from.iter().any(of)
}
