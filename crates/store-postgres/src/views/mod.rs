//! Views over records: a row for each record of a kind, with columns from its JSON body. They are for
//! people and reports; nothing here reads them.
//!
//! Views are made in a schema of their own, in one transaction, by one node at a time. A view that is
//! as it should be is left alone, because replacing it waits for everybody who reads it. Only views
//! with our comment are replaced.
//!
//! | file | what |
//! |---|---|
//! | `statement` | the text of a view, quoted safely |
//!
//! **Invariant.** What a body has never fails a query: a value that is not of the column's type, and a
//! body that is not JSON, are null.

mod statement;

use std::collections::HashSet;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Connector};
use crate::error::{OpenError, describe};
use crate::options::{PostgresOptions, check_schema};
use statement::{FUNCTIONS, identifier, literal, view_text};

pub use statement::MAX_NAME_BYTES;

/// Most views in one call.
pub const MAX_VIEWS: usize = 10_000;

/// What the comments of our views begin with; a digest of the definition follows.
const MARK: &str = "Made by Segno, which replaces it. ";

/// How long a view that somebody reads is waited for.
const LOCK_TIMEOUT_S: u64 = 5;

/// A view over the records of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its name; at most [`MAX_NAME_BYTES`].
    pub name: String,
    /// Kind of the records.
    pub kind: String,
    /// Kind of the records that these belong to: a record's id and a slash begin the ids of all that
    /// belong to it. Only records that belong to one are shown.
    pub parent: Option<String>,
    /// The columns. Names that are too long are cut; those that are taken get a number.
    pub columns: Vec<ViewColumn>,
    /// Which records are shown: those that pass all conditions.
    pub conditions: Vec<ViewCondition>,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Where its values are.
    pub value: ViewValue,
    /// Its type.
    pub kind: ColumnType,
    /// The value of records that have none, as text; null without it.
    pub absent: Option<String>,
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewValue {
    /// A part of the id, from 1; slashes separate parts.
    IdPart(u8),
    /// A value in the body, by the names of fields from the outermost.
    Body(Vec<String>),
    /// The same in the body of the record that this one belongs to.
    Parent(Vec<String>),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// `text`: texts as they are, everything else as JSON.
    Text,
    /// `bigint`: whole numbers of 64 bits with a sign.
    Integer,
    /// `boolean`
    Boolean,
    /// `timestamptz`, from texts such as `2026-03-15T06:00:00Z`.
    Time,
    /// `jsonb`
    Json,
}

/// A condition that records pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewCondition {
    /// The value, as text.
    pub value: ViewValue,
    /// It is one of these.
    pub one_of: Vec<String>,
}

/// Why views could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A name cannot be used, or there are too many views.
    #[error("{0}")]
    Invalid(String),
    /// No connection could be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The role may not do it.
    #[error(
        "role {role:?} may not make views in schema {schema:?}: {message}; let an administrator run CREATE SCHEMA {schema} AUTHORIZATION {role}"
    )]
    Denied {
        /// The schema of the views.
        schema: String,
        /// The role of the connection.
        role: String,
        /// What the database said.
        message: String,
    },
    /// Something else has the name of a view.
    #[error("schema {schema:?} has a relation {name:?} that Segno did not make; choose another schema")]
    Taken {
        /// The schema of the views.
        schema: String,
        /// The name.
        name: String,
    },
    /// Columns have changed, and views of others use the old ones.
    #[error(
        "view {name:?} in schema {schema:?} has other columns now, and others depend on it: {message}; drop those, start again and make them anew"
    )]
    InUse {
        /// The schema of the views.
        schema: String,
        /// The view.
        name: String,
        /// What the database said.
        message: String,
    },
    /// A view has to be replaced, and somebody reads it.
    #[error(
        "view {name:?} in schema {schema:?} is being read, for more than {LOCK_TIMEOUT_S} s, and cannot be replaced; start again when the query has ended"
    )]
    Busy {
        /// The schema of the views.
        schema: String,
        /// The view.
        name: String,
    },
    /// The database refused, or the connection was lost.
    #[error("views cannot be made in schema {schema:?}: {message}")]
    Failed {
        /// The schema of the views.
        schema: String,
        /// What the database said.
        message: String,
    },
}

/// Checks the name of a schema for views.
///
/// # Errors
/// Says which names can be used.
pub fn check_view_schema(schema: &str) -> Result<(), ViewError> {
    check_schema(schema).map_err(|error| ViewError::Invalid(error.to_string()))
}

/// Makes views over the records of the store at a URL, all or none. Returns how many were made or
/// replaced; those that are as they should be are left alone. Views that are not named stay as they are.
///
/// # Errors
/// When a name cannot be used, the role lacks rights, or the database cannot be reached.
pub async fn create_views(url: &str, schema: &str, views: &[View]) -> Result<usize, ViewError> {
    check_view_schema(schema)?;
    let options = PostgresOptions::from_url(url)?;
    if options.schema == schema {
        let text = format!("schema {schema:?} is that of the store; choose another one for views");
        return Err(ViewError::Invalid(text));
    }
    check(views)?;
    let connection = Connector::for_statements(&options)?.connect(None).await?;
    let maker = Maker { connection: &connection, schema, records: format!("{}.records", options.schema) };
    maker.make_all(views).await
}

fn check(views: &[View]) -> Result<(), ViewError> {
    if views.len() > MAX_VIEWS {
        return Err(ViewError::Invalid(format!(
            "{} views are more than the limit of {MAX_VIEWS}",
            views.len()
        )));
    }
    let mut names = HashSet::new();
    for view in views {
        let name = &view.name;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
            let text = format!("{name:?} cannot be a view: use 1 to {MAX_NAME_BYTES} bytes without U+0000");
            return Err(ViewError::Invalid(text));
        }
        if !names.insert(name) {
            return Err(ViewError::Invalid(format!("there are two views {name:?}")));
        }
    }
    Ok(())
}

/// Makes views over one connection.
struct Maker<'a> {
    connection: &'a Connection,
    schema: &'a str,
    /// The view of the store that has the records, with its schema.
    records: String,
}

/// What there is under the name of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    AsItShouldBe,
    /// Ours, with another definition.
    Older,
    /// Not ours.
    Foreign,
}

impl ViewError {
    /// Whether the views are there as they were before, and only cannot be replaced at the moment.
    pub fn leaves_older_views(&self) -> bool {
        matches!(self, ViewError::InUse { .. } | ViewError::Busy { .. })
    }
}

impl Maker<'_> {
    async fn make_all(&self, views: &[View]) -> Result<usize, ViewError> {
        let client = self.connection.client();
        // The lock ends with the transaction, so that it works through any pooler.
        let begin = format!(
            "BEGIN; SET LOCAL statement_timeout = 0; \
             SELECT pg_advisory_xact_lock(hashtext('segno views in {}')); \
             SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'",
            self.schema
        );
        let made = async {
            client.batch_execute(&begin).await.map_err(Problem::of("the schema"))?;
            self.prepare().await?;
            let texts: Vec<String> =
                views.iter().map(|view| view_text(view, self.schema, &self.records)).collect();
            let mut made = 0;
            for ((view, text), (found, digest)) in
                views.iter().zip(&texts).zip(self.look(views, &texts).await?)
            {
                if found == Found::AsItShouldBe {
                    continue;
                }
                self.make(view, text, found, &digest).await?;
                made += 1;
            }
            client.batch_execute("COMMIT").await.map_err(Problem::of("the schema"))?;
            Ok(made)
        };
        match made.await {
            Ok(made) => Ok(made),
            Err(problem) => {
                // The connection is as good as gone if even this fails, and the first error says why.
                let _ = client.batch_execute("ROLLBACK").await;
                Err(self.error(problem).await)
            }
        }
    }

    /// Makes the schema if it is not there, and the functions that the views use.
    async fn prepare(&self) -> Result<(), Problem> {
        let client = self.connection.client();
        let exists = "SELECT to_regnamespace($1) IS NOT NULL";
        let row = client.query_typed_one(exists, &[(&self.schema, Type::TEXT)]).await;
        // With the right to use a schema but not to create any, IF NOT EXISTS would be refused.
        if !row.map_err(Problem::of("the schema"))?.get::<_, bool>(0) {
            let create = format!("CREATE SCHEMA {}", identifier(self.schema));
            client.batch_execute(&create).await.map_err(Problem::of("the schema"))?;
        }
        for (signature, text) in FUNCTIONS {
            let name = format!("{}.{signature}", identifier(self.schema));
            let digest_of =
                format!("SELECT md5($1), obj_description(to_regprocedure({}), 'pg_proc')", literal(&name));
            let row = client.query_typed_one(&digest_of, &[(text, Type::TEXT)]).await;
            let row = row.map_err(Problem::of(signature))?;
            let comment = format!("{MARK}{}", row.get::<_, String>(0));
            if row.get::<_, Option<String>>(1).as_ref() == Some(&comment) {
                continue;
            }
            let text = text.replace("@schema@", &identifier(self.schema));
            let text = format!("{text}; COMMENT ON FUNCTION {name} IS {}", literal(&comment));
            client.batch_execute(&text).await.map_err(Problem::of(signature))?;
        }
        Ok(())
    }

    /// What there is of each view, and the digest of its definition.
    async fn look(&self, views: &[View], texts: &[String]) -> Result<Vec<(Found, String)>, Problem> {
        let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
        let sql = "SELECT md5(wanted.definition), c.relkind = 'v', obj_description(c.oid, 'pg_class')
                     FROM unnest($1, $2) WITH ORDINALITY AS wanted(name, definition, place)
                     LEFT JOIN pg_class c ON c.relname = wanted.name AND c.relnamespace = to_regnamespace($3)
                    ORDER BY wanted.place";
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&names, Type::TEXT_ARRAY), (&texts, Type::TEXT_ARRAY), (&self.schema, Type::TEXT)];
        let rows = self.connection.client().query_typed(sql, &parameters).await;
        let rows = rows.map_err(Problem::of("the schema"))?;
        let found = rows.iter().map(|row| {
            let digest: String = row.get(0);
            let (is_view, comment): (Option<bool>, Option<String>) = (row.get(1), row.get(2));
            let found = match (is_view, comment.as_deref().and_then(|comment| comment.strip_prefix(MARK))) {
                (None, _) => Found::Nothing,
                (Some(true), Some(known)) if known == digest => Found::AsItShouldBe,
                (Some(true), Some(_)) => Found::Older,
                _ => Found::Foreign,
            };
            (found, digest)
        });
        Ok(found.collect())
    }

    async fn make(&self, view: &View, text: &str, found: Found, digest: &str) -> Result<(), Problem> {
        let client = self.connection.client();
        let name = format!("{}.{}", identifier(self.schema), identifier(&view.name));
        if found == Found::Foreign {
            return Err(Problem { name: view.name.clone(), error: None });
        }
        let create = format!("CREATE OR REPLACE VIEW {name} AS {text}");
        client.batch_execute("SAVEPOINT view").await.map_err(Problem::of(&view.name))?;
        let created = client.batch_execute(&create).await;
        match created {
            // Columns can only be added at the end. Then the view is made anew, and loses its grants.
            Err(error) if error.code() == Some(&SqlState::INVALID_TABLE_DEFINITION) => {
                let anew = format!("ROLLBACK TO view; DROP VIEW {name}; {create}");
                client.batch_execute(&anew).await.map_err(Problem::of(&view.name))?;
            }
            other => other.map_err(Problem::of(&view.name))?,
        }
        let comment = format!("COMMENT ON VIEW {name} IS {}", literal(&format!("{MARK}{digest}")));
        client.batch_execute(&comment).await.map_err(Problem::of(&view.name))
    }

    async fn error(&self, problem: Problem) -> ViewError {
        let (schema, name) = (self.schema.to_owned(), problem.name);
        let Some(error) = problem.error else { return ViewError::Taken { schema, name } };
        let message = match error.as_db_error().and_then(|error| error.detail()) {
            Some(detail) => format!("{}: {detail}", describe(&error)),
            None => describe(&error),
        };
        let code = error.code();
        if code == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
            let role = self.connection.client().query_typed_one("SELECT current_user::text", &[]).await;
            let role = role.map_or_else(|_| String::new(), |row| row.get(0));
            return ViewError::Denied { schema, role, message };
        }
        if code == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) {
            return ViewError::InUse { schema, name, message };
        }
        if code == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            return ViewError::Busy { schema, name };
        }
        let message = format!("{name}: {message}");
        ViewError::Failed { schema, message }
    }
}

/// What went wrong, and with what; without an error, something else has the name.
struct Problem {
    name: String,
    error: Option<tokio_postgres::Error>,
}

impl Problem {
    fn of(name: &str) -> impl Fn(tokio_postgres::Error) -> Problem {
        let name = name.to_owned();
        move |error| Problem { name: name.clone(), error: Some(error) }
    }
}
