//! `spoonbill schema`: the JSON Schema of the definitions.

use clap::Args;

use super::{CommandResult, RunCommand, print_out};

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {}

impl RunCommand for SchemaArgs {
    fn run(&self) -> CommandResult {
        print_out(&spoonbill_defs::schema())
    }
}
