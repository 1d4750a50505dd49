//! A node with functions on a memory store, in real time: processes and sockets know no other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{Client, Failure, Payload, Registry, Runtime};
use segno_actions::functions::{
    Function, FunctionLog, FunctionName, Functions, FunctionsBuilder, INVOKE, InvokeRequest, Scope,
    invocation_id,
};
use serde_json::Value;

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A name that is a slug.
pub fn name(text: &str) -> FunctionName {
    FunctionName::new(text).unwrap()
}

/// A declaration in TOML.
pub fn declaration(toml: &str) -> Function {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}\n{error}"))
}

/// A secret in a file, and the reference to it in TOML.
pub fn secret_file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let reference = format!("{{ file = {:?} }}", file.path());
    (file, reference)
}

/// Waits, but not for ever.
pub async fn within_reason<F: Future>(what: &str, future: F) -> F::Output {
    let output = clock::timeout(&SystemClock, PATIENCE, future).await;
    output.unwrap_or_else(|| panic!("{what} took longer than {PATIENCE:?}"))
}

/// A node with functions.
pub struct Node {
    pub functions: Functions,
    pub client: Client,
    pub runtime: Runtime,
}

impl Node {
    /// A node with one function, called `it`, declared in TOML.
    pub async fn with(toml: &str) -> Node {
        let function = declaration(toml);
        Self::start(|builder| builder.declare(name("it"), function)).await
    }

    pub async fn start(declare: impl FnOnce(FunctionsBuilder) -> FunctionsBuilder) -> Node {
        let store: Arc<dyn Store> = MemoryStore::new();
        let functions = declare(Functions::builder(store.clone())).build().unwrap();
        let registry = functions.register(Registry::builder()).build().unwrap();
        let runtime = Runtime::builder(store.clone()).registry(registry).start().await.unwrap();
        Node { functions, client: Client::new(store), runtime }
    }

    /// Starts `it` under a key and returns the instance.
    pub async fn begin(&self, key: &str, input: Value) -> String {
        let scope = Scope::default();
        let request = InvokeRequest::new(name("it"), Payload::encode(&input).unwrap());
        let invocation = self.functions.prepare(&scope, request).await.unwrap();
        let started = self.client.start(INVOKE, invocation).id(invocation_id(&scope, key)).await.unwrap();
        started.id().to_owned()
    }

    /// Waits for the end of an instance.
    pub async fn end(&self, instance: &str) -> Result<Value, Failure> {
        let ended =
            within_reason("the call", self.client.wait_until_ended(instance, PATIENCE)).await.unwrap();
        match (ended.result(), ended.failure()) {
            (Some(result), _) => Ok(result.decode().unwrap()),
            (_, Some(failure)) => Err(failure.clone()),
            _ => panic!("{ended:?} has neither a result nor a failure"),
        }
    }

    /// Runs `it`.
    pub async fn call(&self, input: Value) -> Result<Value, Failure> {
        let instance = self.begin("call", input).await;
        self.end(&instance).await
    }

    /// Everything that is written down about an instance, as text.
    pub async fn written_about(&self, instance: &str) -> String {
        let history = self.client.history(instance).await.unwrap();
        let logs = logs_of(&self.functions, instance).await;
        let listed = self.functions.list(&Scope::default(), None, 100).await.unwrap();
        let listed = segno_actions::Listed::split(listed).0;
        let declared: Vec<String> =
            listed.iter().map(|found| serde_json::to_string(&found.function).unwrap()).collect();
        format!("{history:?} {logs:?} {listed:?} {declared:?} {:?}", self.client.instance(instance).await)
    }
}

/// What the tools of an instance wrote.
pub async fn logs_of(functions: &Functions, instance: &str) -> Vec<FunctionLog> {
    let rows = functions.list_logs(instance, None, 100).await.unwrap();
    rows.into_iter().filter(|row| row.is_own).map(|row| row.log.readable().unwrap()).collect()
}
