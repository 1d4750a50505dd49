//! Which syntax is allowed. What is not named here is refused, so that a new kind of node in the parser opens nothing.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Function, FunctionArguments, GroupByExpr, Ident, JoinConstraint,
    JoinOperator, ObjectName, OrderBy, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr,
    TableFactor, Value, Visit, Visitor,
};

use super::error::SqlError;
use super::functions;
use super::limits::MAX_REFERENCES;
use super::table::Tables;

/// The names that a query gives by WITH, in lowercase letters.
pub struct Named(pub Vec<String>);

/// Refuses what may not be run, and returns the names that the query defines.
///
/// # Errors
/// `sql-refused` with the part that is not allowed; `sql-too-large` for too many tables.
pub fn check(query: &Query, tables: &Tables) -> Result<Named, SqlError> {
    let mut names = Names(Vec::new());
    let _ = query.visit(&mut names);
    let Names(named) = names;
    if let Some(taken) = named.iter().find(|name| tables.find(name).is_some()) {
        return Err(SqlError::Refused(format!("WITH {taken} has the name of a table; choose another one")));
    }
    let mut checker = Checker { tables, named: &named, references: 0 };
    match query.visit(&mut checker) {
        ControlFlow::Continue(()) => Ok(Named(named)),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Names(Vec<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(tables.map(|table| unquoted(&table.alias.name).to_ascii_lowercase()));
        ControlFlow::Continue(())
    }
}

struct Checker<'a> {
    tables: &'a Tables,
    named: &'a [String],
    references: usize,
}

type Checked = ControlFlow<SqlError>;

fn refuse(what: impl std::fmt::Display) -> Checked {
    ControlFlow::Break(SqlError::Refused(format!("{what} is not supported")))
}

fn allow(is_allowed: bool, what: impl std::fmt::Display) -> Checked {
    if is_allowed { ControlFlow::Continue(()) } else { refuse(what) }
}

impl Visitor for Checker<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> Checked {
        let is_plain = query.fetch.is_none()
            && query.locks.is_empty()
            && query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        allow(is_plain, "a clause behind the query")?;
        body(&query.body)
    }

    fn pre_visit_order_by(&mut self, order_by: &OrderBy) -> Checked {
        let is_plain = matches!(order_by.kind, OrderByKind::Expressions(_)) && order_by.interpolate.is_none();
        allow(is_plain, "this form of ORDER BY")
    }

    fn pre_visit_select(&mut self, select: &Select) -> Checked {
        let is_plain = select.optimizer_hints.is_empty()
            && select.select_modifiers.is_none()
            && select.top.is_none()
            && select.exclude.is_none()
            && select.into.is_none()
            && select.lateral_views.is_empty()
            && select.prewhere.is_none()
            && select.connect_by.is_empty()
            && select.cluster_by.is_empty()
            && select.distribute_by.is_empty()
            && select.sort_by.is_empty()
            && select.qualify.is_none()
            && select.value_table_mode.is_none()
            && matches!(select.flavor, SelectFlavor::Standard)
            && !matches!(select.distinct, Some(sqlparser::ast::Distinct::On(_)));
        allow(is_plain, "a clause of this SELECT")?;
        let groups = matches!(&select.group_by, GroupByExpr::Expressions(_, with) if with.is_empty());
        allow(groups, "this form of GROUP BY")?;
        for item in &select.projection {
            let is_plain = !matches!(item, SelectItem::ExprWithAliases { .. });
            allow(is_plain, item)?;
        }
        for join in select.from.iter().flat_map(|from| &from.joins) {
            self.join(&join.join_operator, join.global)?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Checked {
        self.references += 1;
        if self.references > MAX_REFERENCES {
            let detail = format!("the query names more than {MAX_REFERENCES} tables and subqueries");
            return ControlFlow::Break(SqlError::TooLarge(detail));
        }
        match factor {
            TableFactor::Table {
                name,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                alias,
            } => {
                let is_plain = with_hints.is_empty()
                    && version.is_none()
                    && !with_ordinality
                    && partitions.is_empty()
                    && json_path.is_none()
                    && sample.is_none()
                    && index_hints.is_empty()
                    && alias.as_ref().is_none_or(|alias| alias.columns.is_empty() && alias.at.is_none());
                allow(is_plain, factor)?;
                self.relation(name, args.is_some())
            }
            TableFactor::Derived { lateral, sample, alias, .. } => {
                let is_plain = !lateral
                    && sample.is_none()
                    && alias.as_ref().is_none_or(|alias| alias.columns.is_empty() && alias.at.is_none());
                allow(is_plain, "LATERAL or SAMPLE")
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                allow(alias.is_none(), "an alias of a join in parentheses")?;
                for join in &table_with_joins.joins {
                    self.join(&join.join_operator, join.global)?;
                }
                ControlFlow::Continue(())
            }
            other => refuse(other),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::Identifier(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::Between { .. }
            | Expr::UnaryOp { .. }
            | Expr::Collate { .. }
            | Expr::Nested(_)
            | Expr::Case { .. }
            | Expr::Exists { .. }
            | Expr::Subquery(_)
            | Expr::Tuple(_)
            | Expr::Wildcard(_) => ControlFlow::Continue(()),
            Expr::CompoundIdentifier(parts) => allow(parts.len() == 2, expr),
            Expr::Like { any, .. } => allow(!any, "LIKE ANY"),
            Expr::Cast { kind, format, .. } => allow(*kind == CastKind::Cast && format.is_none(), expr),
            Expr::Substring { special, .. } => allow(*special, expr),
            Expr::Trim { trim_where, trim_what, .. } => {
                allow(trim_where.is_none() && trim_what.is_none(), expr)
            }
            Expr::BinaryOp { op, .. } => allow(is_operator(op), op),
            Expr::Value(value) => allow(
                matches!(
                    value.value,
                    Value::Number(_, false) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null
                ),
                expr,
            ),
            Expr::Function(function) => call(function),
            other => refuse(other),
        }
    }
}

impl Checker<'_> {
    fn join(&self, operator: &JoinOperator, global: bool) -> Checked {
        let constraint = match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint) => constraint,
            _ => return refuse("this kind of join"),
        };
        let is_plain = match constraint {
            JoinConstraint::Using(columns) => columns.iter().all(|column| column.0.len() == 1),
            JoinConstraint::On(_) | JoinConstraint::Natural | JoinConstraint::None => true,
        };
        allow(is_plain && !global, "this kind of join")
    }

    fn relation(&self, name: &ObjectName, is_call: bool) -> Checked {
        let Some(name) = single(name) else {
            return refuse(format_args!("the name {name}: tables have names of one part, and"));
        };
        let is_function = functions::TABLES.iter().any(|known| known.eq_ignore_ascii_case(&name));
        let is_known = match is_call {
            true => is_function,
            false => self.tables.find(&name).is_some() || self.named.contains(&name.to_ascii_lowercase()),
        };
        if is_known {
            return ControlFlow::Continue(());
        }
        let what = if is_call { "table function" } else { "table" };
        let known = self.tables.iter().map(|table| table.info().name);
        let known: Vec<&str> = if is_call { functions::TABLES.to_vec() } else { known.collect() };
        let detail = format!("there is no {what} {name:?}; there are: {}", known.join(", "));
        ControlFlow::Break(SqlError::Refused(detail))
    }
}

/// What can be the middle of a query.
fn body(body: &SetExpr) -> Checked {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) => ControlFlow::Continue(()),
        SetExpr::SetOperation { left, right, set_quantifier, .. } => {
            use sqlparser::ast::SetQuantifier::{All, None};
            allow(matches!(set_quantifier, All | None), "this form of UNION")?;
            self::body(left)?;
            self::body(right)
        }
        SetExpr::Values(values) => {
            allow(!values.explicit_row && !values.value_keyword, "this form of VALUES")
        }
        SetExpr::Insert(_)
        | SetExpr::Update(_)
        | SetExpr::Delete(_)
        | SetExpr::Merge(_)
        | SetExpr::Table(_) => refuse("a query that is not a SELECT"),
    }
}

fn call(function: &Function) -> Checked {
    let Some(name) = single(&function.name) else { return refuse(&function.name) };
    if !functions::is_allowed(&name) {
        let detail =
            format!("there is no function {name:?}, or it may not be called; docs/guide/sql.md lists them");
        return ControlFlow::Break(SqlError::Refused(detail));
    }
    let is_plain = !function.uses_odbc_syntax
        && matches!(function.parameters, FunctionArguments::None)
        && !matches!(function.args, FunctionArguments::Subquery(_))
        && function.within_group.is_empty()
        && function.null_treatment.is_none();
    allow(is_plain, function)
}

fn is_operator(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(
        op,
        B::Plus
            | B::Minus
            | B::Multiply
            | B::Divide
            | B::Modulo
            | B::StringConcat
            | B::Gt
            | B::Lt
            | B::GtEq
            | B::LtEq
            | B::Eq
            | B::NotEq
            | B::And
            | B::Or
            | B::BitwiseAnd
            | B::BitwiseOr
            | B::PGBitwiseShiftLeft
            | B::PGBitwiseShiftRight
            | B::Glob
            | B::Arrow
            | B::LongArrow
    )
}

/// The name of something whose name has one part, without quotes.
pub fn single(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(unquoted),
        _ => None,
    }
}

/// A name without its quotes.
pub fn unquoted(ident: &Ident) -> String {
    match ident.quote_style {
        Some(quote) if quote != '[' => ident.value.replace(&format!("{quote}{quote}"), &quote.to_string()),
        _ => ident.value.clone(),
    }
}
