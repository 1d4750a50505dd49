//! Tests of the driver: whole runs in virtual time, on stores and object stores that fail.

mod callbacks;
mod crash;
mod documents;
mod health;
mod loss;
mod scenario;
mod watches;
mod world;
