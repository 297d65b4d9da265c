//! Commands, their output and their exit codes, compared word for word.

mod check;
mod closed_pipe;
mod data_dir;
mod fsck;
mod help;
mod init;
mod query;
mod refusals;
mod run;
mod settings;
