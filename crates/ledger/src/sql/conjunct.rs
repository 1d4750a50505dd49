//! From a condition to constraints on one column.
//!
//! Only comparisons that SQLite evaluates as a comparison of like types are read: a text with a text column, a whole
//! number with a column of whole numbers, a time with a column of times. For all others its rules of affinity decide,
//! and they are left to it.

use sqlparser::ast::{BinaryOperator, Expr};

use super::constant::literal;
use super::instant;
use super::limits::MAX_VALUES;
use super::scope::{Resolved, Scope};
use super::table::{ColumnKind, Test};
use super::value::Value;

/// What a condition says of one column.
#[derive(Clone, Debug)]
pub struct Conjunct {
    /// The column.
    pub of: Resolved,
    /// Of these tests at least one is met.
    pub any_of: Vec<Test>,
}

/// What a condition says of one column, if that is all that it says.
pub fn read(expr: &Expr, scope: &Scope) -> Option<Conjunct> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            compared(left, op, right, scope).or_else(|| compared(right, &flipped(op)?, left, scope))
        }
        Expr::Between { expr, negated: false, low, high } => {
            let of = scope.resolve(expr)?;
            let (low, high) = (edge(of, literal(low)?)?, edge(of, literal(high)?)?);
            let test = Test::Within { from: Some(low), before: Some(high.checked_add(1)?) };
            Some(Conjunct { of, any_of: vec![test] })
        }
        Expr::InList { expr, list, negated: false } if list.len() <= MAX_VALUES => {
            let of = scope.resolve(expr)?;
            let mut any_of = Vec::new();
            for item in list {
                let test = equals(of, literal(item)?)?;
                if !any_of.contains(&test) {
                    any_of.push(test);
                }
            }
            Some(Conjunct { of, any_of })
        }
        Expr::Like { negated: false, any: false, expr, pattern, escape_char: None } => {
            prefix(expr, pattern, ['%', '_', '%'], scope)
        }
        _ => None,
    }
}

fn compared(column: &Expr, op: &BinaryOperator, value: &Expr, scope: &Scope) -> Option<Conjunct> {
    let of = scope.resolve(column)?;
    let within = |from, before| Test::Within { from, before };
    let test = match op {
        BinaryOperator::Eq => equals(of, literal(value)?)?,
        BinaryOperator::Lt => within(None, Some(edge(of, literal(value)?)?)),
        BinaryOperator::LtEq => within(None, Some(edge(of, literal(value)?)?.checked_add(1)?)),
        BinaryOperator::Gt => within(Some(edge(of, literal(value)?)?.checked_add(1)?), None),
        BinaryOperator::GtEq => within(Some(edge(of, literal(value)?)?), None),
        BinaryOperator::Glob => return prefix(column, value, ['*', '?', '['], scope),
        _ => return None,
    };
    Some(Conjunct { of, any_of: vec![test] })
}

/// The operator that says the same with its sides exchanged.
fn flipped(op: &BinaryOperator) -> Option<BinaryOperator> {
    match op {
        BinaryOperator::Eq => Some(BinaryOperator::Eq),
        BinaryOperator::Lt => Some(BinaryOperator::Gt),
        BinaryOperator::LtEq => Some(BinaryOperator::GtEq),
        BinaryOperator::Gt => Some(BinaryOperator::Lt),
        BinaryOperator::GtEq => Some(BinaryOperator::LtEq),
        _ => None,
    }
}

/// A column that equals a value.
pub fn equals(of: Resolved, value: Value) -> Option<Test> {
    match (of.column.kind, value) {
        (ColumnKind::Text | ColumnKind::Json, value @ Value::Text(_))
        | (ColumnKind::Integer | ColumnKind::Flag, value @ Value::Integer(_)) => Some(Test::Equals(value)),
        (ColumnKind::Time, Value::Text(text)) => {
            let at = moment(&text)?;
            Some(Test::Within { from: Some(at), before: Some(at.checked_add(1)?) })
        }
        _ => None,
    }
}

/// The end of a range.
fn edge(of: Resolved, value: Value) -> Option<i64> {
    match (of.column.kind, value) {
        (ColumnKind::Integer | ColumnKind::Flag, Value::Integer(number)) => Some(number),
        (ColumnKind::Time, Value::Text(text)) => moment(&text),
        _ => None,
    }
}

/// A time in the very form that columns have: only such texts compare as times do.
fn moment(text: &str) -> Option<i64> {
    instant::parse(text).filter(|ms| instant::text(*ms) == text)
}

/// A pattern that says how a text begins and nothing else. `signs` are what is special in a pattern; the first one
/// stands for any rest.
fn prefix(column: &Expr, pattern: &Expr, signs: [char; 3], scope: &Scope) -> Option<Conjunct> {
    let of = scope.resolve(column)?;
    if of.column.kind != ColumnKind::Text {
        return None;
    }
    let Value::Text(pattern) = literal(pattern)? else { return None };
    let begin = pattern.strip_suffix(signs[0])?;
    if begin.contains(signs) {
        return None;
    }
    Some(Conjunct { of, any_of: vec![Test::Prefix(begin.to_owned())] })
}
