//! `segno start`: starts an instance.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use segno::clock::SystemClock;
use segno_api::Json;
use segno_api::instance::{self, StartInstance};

use super::arguments::{OnConflict, Start};
use super::wait;
use crate::exit::Failure;
use crate::moment;
use crate::output::{Output, Table};

/// Does it.
pub async fn run(arguments: Start, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let labels = pairs("--label", &arguments.labels)?;
    let start_at = output.optional_moment(arguments.at)?;
    let request = StartInstance {
        orchestration: arguments.orchestration,
        version: arguments.version,
        id: arguments.id,
        input: json("--input", &arguments.input)?,
        labels,
        start_at,
        on_conflict: match arguments.on_conflict {
            OnConflict::Reject => instance::OnConflict::Reject,
            OnConflict::UseExisting => instance::OnConflict::UseExisting,
            OnConflict::Replace => instance::OnConflict::Replace,
        },
    };
    let started = client.start(&request, arguments.idempotency_key.as_deref(), Duration::ZERO).await?;
    if arguments.wait {
        output.hint(&format!("started {}", started.id));
        return wait::until_ended(&client, &started.id, arguments.timeout, output).await;
    }
    let what = match (started.created, start_at) {
        (false, _) => "exists already".to_owned(),
        (true, Some(at)) if at > moment::now(&SystemClock) => format!("starts at {}", output.time(at)),
        (true, _) => "started".to_owned(),
    };
    output.print(&started, Table::default().line(&started.id, what))
}

/// What a flag such as `--label` says, which is given once for each name.
///
/// # Errors
/// When one is not `KEY=VALUE`, or a key is given twice.
pub fn pairs(flag: &str, given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut pairs = BTreeMap::new();
    for pair in given {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Failure::Refused(format!("{flag} {pair}: write KEY=VALUE")));
        };
        if pairs.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::Refused(format!("{flag} {pair}: {key} is given twice; keep one")));
        }
    }
    Ok(pairs)
}

/// Bytes from the command line, from a file (`@FILE`) or from standard input (`-`).
///
/// # Errors
/// When they cannot be read.
pub fn bytes(flag: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::File { place: format!("{flag} {text}"), error };
    match text.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(unreadable),
        None if text == "-" => {
            let mut read = Vec::new();
            std::io::stdin().read_to_end(&mut read).map_err(unreadable)?;
            Ok(read)
        }
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// JSON from the command line, from a file or from standard input.
///
/// # Errors
/// When it cannot be read or is not JSON.
pub fn json(flag: &str, text: &str) -> Result<Json, Failure> {
    let text = String::from_utf8(bytes(flag, text)?)
        .map_err(|_| Failure::Refused(format!("{flag} {text}: the file is not UTF-8; save it as UTF-8")))?;
    Json::from_text(text.trim().to_owned()).map_err(|error| {
        Failure::Refused(format!("{flag} is not JSON: {error}; a text needs quotes, as in '\"Ada\"'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_each_key_once() {
        let given = |pairs: &[&str]| pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>();
        let read = pairs("--label", &given(&["a=b", "c=d=e"])).unwrap();
        assert_eq!(read, BTreeMap::from([("a".into(), "b".into()), ("c".into(), "d=e".into())]));
        for (wrong, problem) in [
            (&["a"][..], "--label a: write KEY=VALUE"),
            (&["a=b", "a=c"], "--label a=c: a is given twice; keep one"),
        ] {
            assert_eq!(pairs("--label", &given(wrong)).unwrap_err().to_string(), problem);
        }
    }
}
