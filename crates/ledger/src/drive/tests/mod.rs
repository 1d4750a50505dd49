//! Tests of the driver: whole runs in virtual time, on stores and object stores that fail.

mod crash;
mod loss;
mod scenario;
mod watches;
mod world;
