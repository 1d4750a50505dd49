//! Which table a column name means. Only what is certain is resolved: a name that could be a column of a subquery, of
//! two tables or of an outer query means nothing here.

use sqlparser::ast::{Expr, Join, JoinOperator, Select, TableFactor, TableWithJoins};

use super::check::{single, unquoted};
use super::table::{ColumnInfo, TableInfo, Tables};

/// Where a reference stands in the joins of its SELECT: what decides which conditions may constrain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Conditions of WHERE and of inner joins constrain it.
    Plain,
    /// It is the right side of a LEFT JOIN: so does the condition of that join.
    RightOfLeft,
}

/// One reference in a FROM.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The name by which columns refer to it.
    pub alias: String,
    /// The table; `None` for subqueries, names of WITH and table functions.
    pub table: Option<&'static TableInfo>,
}

/// A condition of a SELECT that every row of its result meets, or of a LEFT JOIN.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition, without AND at its top.
    pub expr: Expr,
    /// The one reference that it may constrain; any if there is none.
    pub only: Option<usize>,
}

/// The references of a SELECT, in their order.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// They.
    pub factors: Vec<Factor>,
}

/// A column of a reference.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// The place of the reference in [`Scope::factors`].
    pub factor: usize,
    /// The column.
    pub column: &'static ColumnInfo,
}

impl Scope {
    /// The references of a SELECT.
    pub fn of(select: &Select, tables: &Tables) -> Self {
        let mut scope = Scope::default();
        for from in &select.from {
            scope.add_all(from, tables);
        }
        scope
    }

    fn add_all(&mut self, from: &TableWithJoins, tables: &Tables) {
        self.add(&from.relation, tables);
        for join in &from.joins {
            self.add(&join.relation, tables);
        }
    }

    fn add(&mut self, factor: &TableFactor, tables: &Tables) {
        let (alias, table) = match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                return self.add_all(table_with_joins, tables);
            }
            TableFactor::Table { name, alias, args, .. } => {
                let name = single(name).unwrap_or_default();
                let table = tables.find(&name).filter(|_| args.is_none());
                (alias.as_ref().map_or(name, |alias| unquoted(&alias.name)), table)
            }
            TableFactor::Derived { alias, .. } => {
                (alias.as_ref().map_or(String::new(), |alias| unquoted(&alias.name)), None)
            }
            _ => (String::new(), None),
        };
        self.factors.push(Factor { alias, table });
    }

    /// The column that an expression is.
    pub fn resolve(&self, expr: &Expr) -> Option<Resolved> {
        match expr {
            Expr::Nested(inner) => self.resolve(inner),
            Expr::Identifier(name) => {
                let name = unquoted(name);
                let mut found = None;
                for (place, factor) in self.factors.iter().enumerate() {
                    // Another one may have a column of this name.
                    let table = factor.table?;
                    if let Some(column) = table.column(&name) {
                        match found {
                            None => found = Some(Resolved { factor: place, column }),
                            Some(_) => return None,
                        }
                    }
                }
                found
            }
            Expr::CompoundIdentifier(parts) => {
                let [alias, name] = parts.as_slice() else { return None };
                let alias = unquoted(alias);
                let mut named =
                    self.factors.iter().enumerate().filter(|(_, f)| f.alias.eq_ignore_ascii_case(&alias));
                let ((place, factor), None) = (named.next()?, named.next()) else { return None };
                let column = factor.table?.column(&unquoted(name))?;
                Some(Resolved { factor: place, column })
            }
            _ => None,
        }
    }

    /// The conditions of a SELECT that may constrain what is fetched.
    ///
    /// Every condition that is used rejects NULL in the column that it constrains. So a row of the result that meets a
    /// condition of WHERE has a row of that table which meets it, and other rows of the table have no part in it:
    /// a row that an outer join adds has NULL there and is rejected. The condition of an inner join is like one of
    /// WHERE. That of a LEFT JOIN constrains its right side alone. Those of RIGHT and FULL JOIN constrain nothing.
    pub fn conditions(select: &Select) -> Vec<Condition> {
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            split(selection, None, &mut conditions);
        }
        let mut place = 0;
        for from in &select.from {
            of_joins(from, &mut place, &mut conditions);
        }
        conditions
    }
}

fn of_joins(from: &TableWithJoins, place: &mut usize, conditions: &mut Vec<Condition>) {
    of_factor(&from.relation, place, conditions);
    for join in &from.joins {
        let right = *place;
        of_factor(&join.relation, place, conditions);
        let is_one = matches!(join.relation, TableFactor::Table { .. });
        match (on(join), side(join)) {
            (Some(on), Some(Side::Plain)) => split(on, None, conditions),
            (Some(on), Some(Side::RightOfLeft)) if is_one => split(on, Some(right), conditions),
            _ => {}
        }
    }
}

fn of_factor(factor: &TableFactor, place: &mut usize, conditions: &mut Vec<Condition>) {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => of_joins(table_with_joins, place, conditions),
        _ => *place += 1,
    }
}

fn side(join: &Join) -> Option<Side> {
    match join.join_operator {
        JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => Some(Side::Plain),
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => Some(Side::RightOfLeft),
        _ => None,
    }
}

fn on(join: &Join) -> Option<&Expr> {
    use sqlparser::ast::JoinConstraint::On;
    match &join.join_operator {
        JoinOperator::Join(On(on))
        | JoinOperator::Inner(On(on))
        | JoinOperator::CrossJoin(On(on))
        | JoinOperator::Left(On(on))
        | JoinOperator::LeftOuter(On(on)) => Some(on),
        _ => None,
    }
}

/// The parts of a condition that AND joins at its top.
fn split(expr: &Expr, only: Option<usize>, conditions: &mut Vec<Condition>) {
    use sqlparser::ast::BinaryOperator::And;
    match expr {
        Expr::Nested(inner) => split(inner, only, conditions),
        Expr::BinaryOp { left, op: And, right } => {
            split(left, only, conditions);
            split(right, only, conditions);
        }
        other => conditions.push(Condition { expr: other.clone(), only }),
    }
}
