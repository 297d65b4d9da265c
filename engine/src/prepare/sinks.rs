//! Appenders and encoders of the append steps. One appender is one file, whoever names it.

use std::sync::Arc;

use spoonbill_defs::{PluginDef, Problem, Step};
use spoonbill_plugins::appender::{FileOptions, is_file_appender};
use spoonbill_plugins::encoder::{self, Encoder};

use super::Maker;

/// An appender of the run.
#[derive(Debug, Clone)]
pub(crate) struct AppenderSpec {
    /// Where its rows go.
    pub file: FileOptions,
}

/// Where an append step sends rows: an encoder, then an appender.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    /// Number of the appender.
    pub appender: u32,
    /// What makes bytes of rows.
    pub encoder: Arc<dyn Encoder>,
}

/// Scoopi's appender for programs that hold the engine inside them.
fn is_list_appender(class: &str) -> bool {
    matches!(class, "list" | "org.codetab.scoopi.plugin.appender.ListAppender")
}

impl Maker<'_> {
    pub(super) fn sinks(&mut self, step: &Step) -> Option<Vec<Sink>> {
        if step.plugins.is_empty() {
            let help = "add a plugin with class `file`".to_owned();
            let message =
                format!("step `{}` has no appender: its rows would be lost", step.name.text);
            self.error(step.name.at, message, Some(help));
            return None;
        }
        let mut all = Some(Vec::new());
        for plugin in &step.plugins {
            if is_list_appender(&plugin.class.text) {
                let words = "a `list` appender keeps rows for embedders; here they go nowhere";
                self.problems.push(Problem::warning(self.sources, plugin.class.at, words));
                continue;
            }
            match (self.sink(plugin), &mut all) {
                (Some(sink), Some(all)) => all.push(sink),
                _ => all = None,
            }
        }
        all
    }

    fn sink(&mut self, plugin: &PluginDef) -> Option<Sink> {
        let class = &plugin.class;
        if !is_file_appender(&class.text) {
            let known = ["file", "org.codetab.scoopi.plugin.appender.FileAppender"];
            let help = spoonbill_defs::suggest(&class.text, known)
                .map_or("the appender there is: `file`".to_owned(), |name| {
                    format!("did you mean `{name}`?")
                });
            let message = format!("`{}` is no appender", class.text);
            self.error(class.at, message, Some(help));
            return None;
        }
        let file = self.options(FileOptions::from_def(plugin));
        let encoder = self.encoder(plugin);
        let (file, encoder) = (file?, encoder?);
        let known = self.appenders.iter().position(|spec| spec.file.file == file.file);
        let appender = known.unwrap_or_else(|| {
            self.appenders.push(AppenderSpec { file });
            self.appenders.len() - 1
        });
        Some(Sink { appender: appender as u32, encoder })
    }

    fn encoder(&mut self, plugin: &PluginDef) -> Option<Arc<dyn Encoder>> {
        let mut made = None;
        for nested in &plugin.plugins {
            let encoder = encoder::from_def(nested);
            made = self.options(encoder);
            made.as_ref()?;
        }
        if plugin.plugins.is_empty() {
            let help = "add `plugins: [ plugin: { name: csv, class: csv } ]` to it".to_owned();
            let message = format!("appender `{}` has no encoder", plugin.name.text);
            self.error(plugin.name.at, message, Some(help));
        }
        made.map(Arc::from)
    }
}
