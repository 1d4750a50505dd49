//! Syncs that wait until a test lets them through: the moment in which a batch is written and not durable.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_shut: bool,
    waiting: usize,
    /// How many that wait may pass.
    passes: usize,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits while the gate is shut.
    pub fn pass(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.is_shut && state.passes == 0).unwrap();
        state.waiting -= 1;
        state.passes = state.passes.saturating_sub(1);
    }

    pub fn shut(self: &Arc<Self>) -> Shut {
        self.lock().is_shut = true;
        Shut(Arc::clone(self))
    }
}

/// The gate is shut as long as this is there. A test that fails opens it, or its store could not be closed.
pub struct Shut(Arc<Gate>);

impl Shut {
    /// Blocks until something waits at the gate.
    pub fn wait_for_sync(&self) {
        let state = self.0.lock();
        let is_reached = self.0.changed.wait_while(state, |state| state.waiting == 0 || state.passes > 0);
        drop(is_reached.unwrap());
    }

    /// Lets one through.
    pub fn let_one_pass(&self) {
        self.0.lock().passes += 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.is_shut, state.passes) = (false, 0);
        drop(state);
        self.0.changed.notify_all();
    }
}
