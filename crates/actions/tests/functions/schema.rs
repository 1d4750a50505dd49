//! Schemas that a validator would not survive: refused when they are declared, and harmless when they were stored before.

use std::sync::Arc;

use segno::Payload;
use segno::store::memory::MemoryStore;
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite, Store};
use segno_actions::functions::{Function, FunctionError, Functions, InvokeRequest, Scope};
use serde_json::{Value, json};

use crate::support::name;

fn function(schema: &Value) -> Function {
    serde_json::from_value(json!({ "executor": "remote", "input_schema": schema })).unwrap()
}

fn chain(count: usize, keyword: &str, copies: usize) -> Value {
    let refer = |n: usize| match keyword {
        "$ref" => json!({ "$ref": format!("#/$defs/d{}", n + 1) }),
        _ => json!({ keyword: vec![json!({ "$ref": format!("#/$defs/d{}", n + 1) }); copies] }),
    };
    let mut defs: serde_json::Map<String, Value> = (0..count).map(|n| (format!("d{n}"), refer(n))).collect();
    defs.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

/// One level of input is three levels of evaluation.
fn tree() -> Value {
    json!({ "properties": { "child": { "allOf": [{ "$ref": "#" }] } } })
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({ "child": inner }))
}

/// As a version without these limits has stored it.
async fn store_earlier(store: &dyn Store, function_name: &str, schema: &Value) {
    let body = serde_json::to_vec(&json!({ "format": 1, "function": function(schema) })).unwrap();
    let write = RecordWrite::Put {
        kind: "segno.function".to_owned(),
        id: format!("default/default/{function_name}"),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: body.into(),
    };
    store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.unwrap();
}

async fn call(functions: &Functions, function: &str, input: &Value) -> Result<(), FunctionError> {
    let request = InvokeRequest::new(name(function), Payload::encode(input).unwrap());
    functions.prepare(&Scope::default(), request).await.map(|_| ())
}

#[tokio::test]
async fn schemas_that_would_bring_the_node_down_cannot_be_declared() {
    let store: Arc<dyn Store> = MemoryStore::new();
    let functions = Functions::builder(store.clone()).build().unwrap();
    let scope = Scope::default();
    let kept = functions.create(&scope, &name("kept"), &function(&tree())).await.unwrap();
    for schema in
        [chain(1_100, "$ref", 1), chain(40, "allOf", 2), chain(20, "anyOf", 2), json!({ "$ref": "#" })]
    {
        let bad = function(&schema);
        let error = functions.create(&scope, &name("bad"), &bad).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("invalid-function", ErrorKind::Invalid), "{error}");
        let error = functions.replace(&scope, &name("kept"), &bad, kept).await.unwrap_err();
        assert_eq!(error.code(), "invalid-function", "{error}");
        let declared = Functions::builder(store.clone()).declare(name("bad"), bad).build();
        let error = declared.err().unwrap();
        assert!(error.to_string().starts_with("functions.bad.input_schema: "), "{error}");
    }
}

#[tokio::test]
async fn calls_that_would_bring_the_node_down_are_refused() {
    let store: Arc<dyn Store> = MemoryStore::new();
    let functions = Functions::builder(store).declare(name("configured"), function(&tree())).build().unwrap();
    functions.create(&Scope::default(), &name("stored"), &function(&tree())).await.unwrap();
    for function in ["configured", "stored"] {
        let error = call(&functions, function, &nested(68)).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("schema-too-costly", ErrorKind::Invalid));
        assert!(error.to_string().contains(&format!("function {function}: ")), "{error}");
        call(&functions, function, &nested(67)).await.unwrap();
    }
}

#[tokio::test]
async fn a_schema_that_was_stored_before_there_were_limits_is_listed_and_refuses_calls() {
    let store: Arc<dyn Store> = MemoryStore::new();
    let schemas = [("chain", chain(1_100, "$ref", 1)), ("exponential", chain(40, "allOf", 2))];
    for (function, schema) in &schemas {
        store_earlier(&*store, function, schema).await;
    }
    let functions = Functions::builder(store).build().unwrap();
    let scope = Scope::default();
    assert_eq!(functions.list(&scope, None, 10).await.unwrap().len(), schemas.len());
    for (function, schema) in &schemas {
        let found = functions.find(&scope, &name(function)).await.unwrap();
        assert_eq!(found.function.input_schema.as_ref(), Some(schema));
        let error = call(&functions, function, &json!("x")).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("invalid-function", ErrorKind::Invalid), "{error}");
        functions.delete(&scope, &name(function), None).await.unwrap();
    }
}
