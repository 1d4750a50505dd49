//! Constant expressions in comparisons with columns, as literals: evaluated once, before anything is fetched, so that
//! they can constrain what is fetched and mean the same when SQLite evaluates the query.
//!
//! A constant that is compared with a time is read as a time, whichever of the usual forms it has: `'2026-11-18'`,
//! `datetime('now', '-1 day')` and `'2026-11-18T12:00:00+01:00'` are compared as moments and not as texts.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Query, Select, Value as Literal, VisitMut, VisitorMut,
};

use super::check::single;
use super::functions;
use super::instant;
use super::scope::Scope;
use super::table::{ColumnKind, Tables};
use super::value::Value;

/// Evaluates an expression without columns; `None` when it has no value.
pub trait Evaluate {
    /// The value of it.
    fn evaluate(&self, expression: &str) -> Option<Value>;
}

/// Replaces constants that are compared with columns by literals.
pub fn fold(query: &mut Query, tables: &Tables, evaluator: &dyn Evaluate) {
    let mut folder = Folder { tables, evaluator, scopes: Vec::new() };
    let _ = query.visit(&mut folder);
}

struct Folder<'a> {
    tables: &'a Tables,
    evaluator: &'a dyn Evaluate,
    scopes: Vec<Scope>,
}

impl VisitorMut for Folder<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.push(Scope::of(select, self.tables));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                if let Some(kind) = self.kind(left) {
                    self.replace(right, kind);
                } else if let Some(kind) = self.kind(right) {
                    self.replace(left, kind);
                }
            }
            Expr::Between { expr, low, high, .. } => {
                if let Some(kind) = self.kind(expr) {
                    self.replace(low, kind);
                    self.replace(high, kind);
                }
            }
            Expr::InList { expr, list, .. } => {
                if let Some(kind) = self.kind(expr) {
                    list.iter_mut().for_each(|item| self.replace(item, kind));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Folder<'_> {
    fn kind(&self, expr: &Expr) -> Option<ColumnKind> {
        self.scopes.last()?.resolve(expr).map(|resolved| resolved.column.kind)
    }

    fn replace(&self, expr: &mut Expr, kind: ColumnKind) {
        let value = match literal(expr) {
            Some(value) => Some(value),
            None if is_constant(expr) => self.evaluator.evaluate(&expr.to_string()),
            None => None,
        };
        let value = match (value, kind) {
            (Some(Value::Text(text)), ColumnKind::Time) => {
                Value::Text(instant::parse(&text).map_or(text, instant::text))
            }
            (Some(value), _) => value,
            (None, _) => return,
        };
        if let Some(literal) = written(value) {
            *expr = literal;
        }
    }
}

/// Whether an operator compares.
pub fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The value of a literal.
pub fn literal(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Nested(inner) => literal(inner),
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) => Some(Value::Text(text.replace("''", "'"))),
            Literal::Number(number, _) => number.parse().ok().map(Value::Integer),
            Literal::Boolean(flag) => Some(Value::flag(*flag)),
            _ => None,
        },
        Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr } => match literal(expr)? {
            Value::Integer(number) => number.checked_neg().map(Value::Integer),
            _ => None,
        },
        _ => None,
    }
}

/// The literal of a value, if it has a plain one.
fn written(value: Value) -> Option<Expr> {
    match value {
        Value::Text(text) => Some(Expr::value(Literal::SingleQuotedString(text.replace('\'', "''")))),
        Value::Integer(number) if number >= 0 => {
            Some(Expr::value(Literal::Number(number.to_string(), false)))
        }
        _ => None,
    }
}

/// Whether an expression has the same value for every row.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Literal::Null),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            is_constant(inner)
        }
        Expr::BinaryOp { left, right, .. } => is_constant(left) && is_constant(right),
        Expr::Function(function) => {
            let is_scalar = single(&function.name).is_some_and(|name| functions::is_scalar(&name));
            let FunctionArguments::List(arguments) = &function.args else { return false };
            is_scalar
                && function.filter.is_none()
                && function.over.is_none()
                && arguments.duplicate_treatment.is_none()
                && arguments.clauses.is_empty()
                && arguments.args.iter().all(|argument| match argument {
                    sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(expr)) => {
                        is_constant(expr)
                    }
                    _ => false,
                })
        }
        _ => false,
    }
}
