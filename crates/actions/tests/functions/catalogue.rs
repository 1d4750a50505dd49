//! The catalogue: configured functions, stored ones, and who sees what.

use std::sync::Arc;

use segno::store::memory::MemoryStore;
use segno::store::{ErrorKind, Store};
use segno::{ActivityContext, Failure};
use segno_actions::Listed;
use segno_actions::functions::{
    Function, FunctionError, Functions, FunctionsBuilder, Origin, Scope, StoredPolicy, VersionedFunction,
};

use crate::support::{declaration, name};

const REMOTE: &str = "executor = \"remote\"";

fn builder() -> FunctionsBuilder {
    let store: Arc<dyn Store> = MemoryStore::new();
    Functions::builder(store)
}

fn scope(tenant: &str) -> Scope {
    Scope::new("eu", tenant).unwrap()
}

fn described(text: &str) -> Function {
    Function { description: Some(text.to_owned()), ..declaration(REMOTE) }
}

fn names(page: &[VersionedFunction]) -> Vec<&str> {
    page.iter().map(|found| found.name.as_str()).collect()
}

/// The code of an error and what the caller can do about it.
fn code<T: std::fmt::Debug>(result: Result<T, FunctionError>) -> (&'static str, ErrorKind) {
    let error = result.unwrap_err();
    assert!(error.to_string().ends_with(&format!("[{}]", error.code())), "{error}");
    (error.code(), error.kind())
}

#[tokio::test]
async fn a_stored_function_is_created_replaced_and_deleted() {
    let functions = builder().build().unwrap();
    let (acme, it) = (scope("acme"), name("it"));
    assert_eq!(code(functions.find(&acme, &it).await), ("unknown-function", ErrorKind::NotFound));
    let first = functions.create(&acme, &it, &described("one")).await.unwrap();
    let found = functions.find(&acme, &it).await.unwrap();
    assert_eq!(found.origin, Origin::Stored { version: first });
    assert_eq!(found.function, described("one"));
    let again = functions.create(&acme, &it, &described("two")).await;
    assert_eq!(code(again), ("function-exists", ErrorKind::Conflict));

    let second = functions.replace(&acme, &it, &described("two"), first).await.unwrap();
    assert_ne!(first, second);
    let stale = functions.replace(&acme, &it, &described("three"), first).await;
    assert_eq!(code(stale), ("function-changed", ErrorKind::Conflict));
    assert_eq!(functions.find(&acme, &it).await.unwrap().function, described("two"));

    let stale = functions.delete(&acme, &it, Some(first)).await;
    assert_eq!(code(stale), ("function-changed", ErrorKind::Conflict));
    functions.delete(&acme, &it, Some(second)).await.unwrap();
    assert_eq!(code(functions.delete(&acme, &it, None).await), ("unknown-function", ErrorKind::NotFound));
    let gone = functions.replace(&acme, &it, &described("x"), second).await;
    assert_eq!(code(gone), ("unknown-function", ErrorKind::NotFound));
    functions.create(&acme, &it, &described("anew")).await.unwrap();
    functions.delete(&acme, &it, None).await.unwrap();
}

#[tokio::test]
async fn tenants_do_not_see_each_other_and_all_see_what_is_configured() {
    let functions = builder().declare(name("shared"), declaration(REMOTE)).build().unwrap();
    let (acme, other) = (scope("acme"), scope("acme2"));
    functions.create(&acme, &name("mine"), &declaration(REMOTE)).await.unwrap();
    functions.create(&other, &name("theirs"), &declaration(REMOTE)).await.unwrap();
    assert_eq!(names(&Listed::split(functions.list(&acme, None, 10).await.unwrap()).0), ["mine", "shared"]);
    assert_eq!(
        names(&Listed::split(functions.list(&other, None, 10).await.unwrap()).0),
        ["shared", "theirs"]
    );
    assert!(functions.find(&other, &name("mine")).await.is_err());
    let found = functions.find(&other, &name("shared")).await.unwrap();
    assert_eq!(found.origin, Origin::Configured);
    let taken = functions.create(&acme, &name("shared"), &declaration(REMOTE)).await;
    assert_eq!(code(taken), ("function-exists", ErrorKind::Conflict));
    let fixed = functions.delete(&acme, &name("shared"), None).await;
    assert_eq!(code(fixed), ("function-exists", ErrorKind::Conflict));
}

#[tokio::test]
async fn pages_follow_each_other_without_gaps() {
    let configured = ["b", "d", "f"];
    let functions = configured
        .into_iter()
        .fold(builder(), |builder, text| builder.declare(name(text), declaration(REMOTE)))
        .build()
        .unwrap();
    let acme = scope("acme");
    for text in ["a", "c", "e", "g"] {
        functions.create(&acme, &name(text), &declaration(REMOTE)).await.unwrap();
    }
    for limit in 1..=8 {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = Listed::split(functions.list(&acme, after.as_ref(), limit).await.unwrap()).0;
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            seen.extend(page.into_iter().map(|found| found.name.to_string()));
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e", "f", "g"], "pages of {limit}");
    }
}

#[tokio::test]
async fn what_is_stored_is_checked_first() {
    let functions = builder().build().unwrap();
    let tool = declaration("executor = \"process\"\ncommand = [\"id\"]");
    let refused = functions.create(&scope("acme"), &name("it"), &tool).await;
    assert_eq!(code(refused), ("function-not-permitted", ErrorKind::Invalid));
    let wrong = Function { input_schema: Some(serde_json::json!({ "type": 7 })), ..declaration(REMOTE) };
    let refused = functions.create(&scope("acme"), &name("it"), &wrong).await;
    assert_eq!(code(refused), ("invalid-function", ErrorKind::Invalid));
    let policy = StoredPolicy { processes: true, ..StoredPolicy::default() };
    let open = builder().stored_policy(policy).build().unwrap();
    open.create(&scope("acme"), &name("it"), &tool).await.unwrap();
}

#[test]
fn a_catalogue_with_a_mistake_is_not_built() {
    let code_of_it = |_: ActivityContext, input: u32| async move { Ok::<_, Failure>(input) };
    for (builder, says) in [
        (
            builder().declare(name("it"), declaration("executor = \"rust\"")),
            "functions.it.executor: the program has no code",
        ),
        (
            builder().rust("it", code_of_it).declare(name("it"), declaration(REMOTE)),
            "functions.it.executor: the program has code of this name",
        ),
        (
            builder().declare(name("it"), declaration(REMOTE)).declare(name("it"), declaration(REMOTE)),
            "\"it\" exists already",
        ),
        (builder().rust("it", code_of_it).rust("it", code_of_it), "\"it\" exists already"),
        (builder().rust("It", code_of_it), "cannot be a function name"),
        (
            builder().declare(name("it"), declaration("executor = \"process\"\ncommand = []")),
            "functions.it.command: it names no program",
        ),
    ] {
        let Err(error) = builder.build() else { panic!("{says}: it was built") };
        assert!(error.to_string().contains(says), "{error} does not say {says:?}");
    }
}
