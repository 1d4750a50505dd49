//! Queries typed one after the other: line editing, history and completion.

use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use segno_api::Client;
use segno_api::sql::{SqlCatalogue, SqlQuery};

use super::{answer, completion};
use crate::exit::Failure;
use crate::output::{self, Output, Rows, without_controls};

/// Lines of the history.
const MAX_HISTORY: usize = 1_000;

/// What can be typed beside queries.
const HELP: &str = "\
A query ends with a semicolon or an empty line.
  .tables         list the tables
  .schema TABLE   list the columns of a table
  .queries        list the shipped queries
  .explain        switch the report of what was read
  .quit           leave (or Ctrl-D)
";

type Console = Editor<Assistant, FileHistory>;

/// Reads and runs queries until the end of the input.
pub async fn run(client: Client, request: SqlQuery, explain: bool, output: &Output) -> Result<(), Failure> {
    let catalogue = client.sql_catalogue().await?;
    let mut console = Some(open(catalogue.clone()).map_err(unusable)?);
    let mut session = Session { client, request, explain, catalogue, output };
    output.hint("type a query, .help or .quit");
    while let Some(mut editor) = console.take() {
        // Typing blocks a thread, and history is written to a file.
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline("segno> ");
            if let Ok(line) = &line {
                let _ = editor.add_history_entry(line.trim());
                keep(&mut editor);
            }
            (line, editor)
        });
        let (line, editor) = read.await.map_err(|error| Failure::Refused(error.to_string()))?;
        match line {
            Ok(line) => {
                if !session.answer(line.trim()).await? {
                    return Ok(());
                }
            }
            // Ctrl-C leaves the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(unusable(error)),
        }
        console = Some(editor);
    }
    Ok(())
}

/// What a console knows.
struct Session<'a> {
    client: Client,
    request: SqlQuery,
    explain: bool,
    catalogue: SqlCatalogue,
    output: &'a Output,
}

impl Session<'_> {
    /// Answers a line; false when it is the last one.
    async fn answer(&mut self, line: &str) -> Result<bool, Failure> {
        let mut words = line.split_whitespace();
        match (words.next().unwrap_or_default(), words.next()) {
            ("", _) => {}
            (".quit" | ".exit", _) => return Ok(false),
            (".help", _) => output::write(HELP.as_bytes())?,
            (".tables", _) => self.tables()?,
            (".queries", _) => self.queries()?,
            (".schema", Some(name)) => self.schema(name.trim_end_matches(';'))?,
            (".explain", _) => {
                self.explain = !self.explain;
                self.output.hint(if self.explain { "reports are shown" } else { "reports are not shown" });
            }
            (command, _) if command.starts_with('.') => {
                self.output.warn(&format!("there is no command {line:?}; .help lists them"));
            }
            _ => self.query(line).await?,
        }
        Ok(true)
    }

    async fn query(&self, text: &str) -> Result<(), Failure> {
        let request = SqlQuery { query: Some(text.to_owned()), ..self.request.clone() };
        match self.client.sql(&request).await {
            Ok(found) => {
                answer::print(&found, answer::Form::Chosen, self.output)?;
                if self.explain {
                    answer::explain(&found, self.output);
                }
            }
            Err(error) => self.output.warn(&error.to_string()),
        }
        Ok(())
    }

    fn tables(&self) -> Result<(), Failure> {
        let mut rows = Rows::new(["table", "description"]);
        for table in &self.catalogue.tables {
            rows.add([table.name.clone(), table.description.clone()]);
        }
        self.show(&rows)
    }

    fn show(&self, rows: &Rows) -> Result<(), Failure> {
        output::write(without_controls(&rows.to_text(self.output.colours)).as_bytes())
    }

    fn queries(&self) -> Result<(), Failure> {
        for shipped in &self.catalogue.shipped {
            let text = format!("-- {}: {}\n{};\n\n", shipped.name, shipped.description, shipped.query);
            output::write(text.as_bytes())?;
        }
        Ok(())
    }

    fn schema(&self, name: &str) -> Result<(), Failure> {
        let found = self.catalogue.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
        let Some(table) = found else {
            self.output.warn(&format!("there is no table {name:?}; .tables lists them"));
            return Ok(());
        };
        let mut rows = Rows::new(["column", "type", "pushed", "description"]);
        for column in &table.columns {
            let pushed = column.pushed.join(", ");
            rows.add([column.name.clone(), column.kind.clone(), pushed, column.description.clone()]);
        }
        self.show(&rows)
    }
}

fn open(catalogue: SqlCatalogue) -> Result<Console, ReadlineError> {
    let config = Config::builder().max_history_size(MAX_HISTORY)?.completion_type(CompletionType::List);
    let mut editor = Console::with_config(config.build())?;
    editor.set_helper(Some(Assistant(catalogue)));
    if let Some(file) = history_file() {
        // Without a history there is none yet.
        let _ = editor.load_history(&file);
    }
    Ok(editor)
}

/// Keeps the history, if there is a place for it. Queries may name what only their author should read.
fn keep(editor: &mut Console) {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(file) = history_file() else { return };
    if let Some(directory) = file.parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    if editor.save_history(&file).is_ok() {
        let _ = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600));
    }
}

/// `$XDG_STATE_HOME/segno/sql_history`, else below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("segno").join("sql_history"))
}

fn unusable(error: ReadlineError) -> Failure {
    Failure::Refused(format!("the terminal cannot be used: {error}; pass the query as an argument"))
}

/// Completes words, and tells whether a query goes on in the next line.
struct Assistant(SqlCatalogue);

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, place: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(completion::complete(&self.0, line, place))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}

/// Whether what was typed is a command, or a query that has ended.
fn is_whole(input: &str) -> bool {
    let text = input.trim();
    text.is_empty() || text.starts_with('.') || text.ends_with(';') || input.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_a_semicolon_or_an_empty_line() {
        for (input, is_ended) in [
            ("", true),
            (".tables", true),
            ("SELECT 1;", true),
            ("SELECT 1; ", true),
            ("SELECT 1", false),
            ("SELECT\n1", false),
            ("SELECT\n1\n", true),
        ] {
            assert_eq!(is_whole(input), is_ended, "{input:?}");
        }
    }
}
