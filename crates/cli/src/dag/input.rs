//! The files and flags of the verbs, read and checked.

use std::path::Path;

use segno_ledger::plan::limits::MAX_DAG_BYTES;
use segno_ledger::plan::{
    INVALID_DAG, INVALID_RUN, OtherOutputs, Parsed, Plan, RunRequest, Selection, parse,
};
use segno_server::schedule::Zones;
use serde_json::{Map, Value};

use super::arguments::RunArguments;
use crate::documents::{Found, read};
use crate::exit::Failure;

/// Reads a DAG; its problems are added to those that were found.
///
/// # Errors
/// When the file cannot be read.
pub fn read_dag<'f>(file: &'f Path, found: &mut Found<'f>) -> Result<Option<Parsed>, Failure> {
    match parse(&read(file, MAX_DAG_BYTES)?, &Zones::newest()) {
        Ok(parsed) => {
            found.add(file, INVALID_DAG, parsed.warnings.clone());
            Ok(Some(parsed))
        }
        Err(error) => {
            found.add(file, INVALID_DAG, error.problems);
            Ok(None)
        }
    }
}

/// The plan of the run that the flags name.
///
/// # Errors
/// `invalid-run` with all that is wrong with the flags.
pub fn plan_of(parsed: &Parsed, arguments: &RunArguments) -> Result<Plan, Failure> {
    let selection = if arguments.select.is_empty() {
        Selection::all(&parsed.dag)
    } else {
        let terms = arguments.select.iter().map(String::as_str);
        let selection = Selection::named(&parsed.dag, &parsed.graph, terms);
        selection.map_err(|problem| Failure::invalid(INVALID_RUN, format!("--select: {problem}")))?
    };
    let params = params(&arguments.params)?;
    let request = RunRequest {
        params: &params,
        partition: arguments.partition.as_deref(),
        selection: &selection,
        other_outputs: OtherOutputs::None,
    };
    parsed.plan(&request).map_err(|error| Failure::invalid(INVALID_RUN, error.problems().join("\n")))
}

fn params(given: &[String]) -> Result<Map<String, Value>, Failure> {
    let params = given.iter().map(|pair| match pair.split_once('=') {
        Some((name, value)) => {
            Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
        }
        None => Err(Failure::Refused(format!("--param {pair}: write NAME=VALUE"))),
    });
    params.collect()
}
