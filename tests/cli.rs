//! What a person types and reads: every command, every exit code, word for word.

mod check;
mod data_dir;
mod fsck;
mod init;
mod query;
mod refusals;
mod run;
mod settings;
