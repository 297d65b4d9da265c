use std::time::Duration;

use rquickjs::Value;

use super::super::testing::page_facts;
use super::super::{ItemScripts, Limits, ScriptError};
use super::ScriptEngine;

fn limits() -> Limits {
    Limits { time: Duration::from_millis(200), memory: 8 << 20, ..Limits::default() }
}

/// For tests of other limits: a busy machine must not exceed the time limit first.
fn without_time_limit() -> Limits {
    Limits { time: Duration::from_secs(20), ..limits() }
}

/// Runs a script that must fail, then one that must succeed on a new engine.
fn fail(expression: &str, limits: Limits) -> ScriptError {
    let mut scripts = ItemScripts::new(&page_facts(), limits);
    let error = scripts.eval(expression).unwrap_err();
    assert_eq!(scripts.eval("1 + 1"), Ok(Some("2".to_owned())), "after {expression}");
    error
}

#[test]
fn an_endless_loop_ends_at_the_time_limit() {
    for expression in [
        "for (;;) {}",
        "(function f() { try { for (;;) {} } catch (e) { f() } finally { f() } })()",
        "while (true) { try { [].concat([1]) } catch (e) {} }",
        "({ toString: function () { for (;;) {} } })",
        "/(x+x+)+y/.test('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
        "Array.prototype.indexOf.call({ length: 1e15 }, 1)",
        "(function next() { Promise.resolve().then(next) })()",
        "(async function () { for (;;) { await 0 } })()",
        "[3, 2, 1].sort(function () { for (;;) {} })",
        "throw { toString: function () { for (;;) {} } }",
    ] {
        let error = fail(expression, limits());
        assert!(matches!(error, ScriptError::TimeLimit { .. }), "{expression}: {error}");
        assert!(error.to_string().contains("`script.time.max`"));
    }
}

#[test]
fn unbounded_allocation_ends_at_the_memory_limit() {
    for expression in [
        "var a = []; for (;;) a.push(new Array(100).fill(1))",
        "var s = 'x'; for (;;) s = s.concat(s) + Math.random().toString(36) + s.split('')",
        "'x'.repeat(1e9)",
        "'x'.padEnd(5e8)",
        "new ArrayBuffer(1e9)",
        "new SharedArrayBuffer(1e9)",
        "new Uint8Array(5e8)",
        "var a = []; for (var i = 0;; i++) a.push({ i: i, f: function () { return a }, r: /x/ })",
        "var m = new Map(); for (var i = 0;; i++) m.set('key' + i, [i])",
        "var o = {}; for (var i = 0;; i++) o['key' + i] = i",
        "'[' + Array(1e6).join('1,2,3,4,5,') + ']'",
        "eval('[' + 'x=>{},'.repeat(1e5) + ']')",
        "JSON.stringify(Array(1e6).fill('xxxxxxxxxxx'))",
    ] {
        let error = fail(expression, without_time_limit());
        assert!(matches!(error, ScriptError::MemoryLimit { .. }), "{expression}: {error}");
        assert!(error.to_string().contains("`script.memory.max`"));
    }
}

#[test]
fn after_a_caught_memory_error_the_engine_can_be_dropped() {
    for expression in [
        "var a = []; try { for (;;) a.push({ a: [1], f: function () { return a } }) } catch (e) {} 1",
        "for (var i = 0; i < 20; i++) { try { 'x'.repeat(4e6 + i).split('') } catch (e) {} } 1",
        "var o = {}; try { for (var i = 0;; i++) o['k' + i] = class { #p = i } } catch (e) {} 1",
        "function* g() { for (;;) yield {} } try { [...g()] } catch (e) {} 1",
        "try { for (var a = [];; a.push(new Proxy({}, {}), Symbol(), new Map([[1, a]]))); } catch (e) {} 1",
    ] {
        let mut scripts = ItemScripts::new(&page_facts(), without_time_limit());
        let result = scripts.eval(expression);
        assert_eq!(result, Ok(Some("1".to_owned())), "{expression}");
    }
}

#[test]
fn a_string_with_a_huge_length_is_an_error() {
    let error = fail("var s = 'x'; for (;;) s += s + s", without_time_limit());
    assert!(error.to_string().contains("string too long"), "{error}");
    let error = fail("var s = 'x'; for (var i = 0; i < 26; i++) s += s; s", without_time_limit());
    assert!(matches!(error, ScriptError::MemoryLimit { .. }), "{error}");
}

#[test]
fn an_engine_without_errors_is_freed_and_not_leaked() {
    for source in [
        "kept = { a: [function () { return kept }] }; kept.kept = kept",
        "class A { #a = this } kept = new A(); function* g() { yield kept } it = g(); it.next()",
        "throw new Error('x')",
        "for (;;) {}",
        "(async function () { for (;;) { await 0 } })()",
        "(function next() { Promise.resolve().then(next) })()",
    ] {
        let engine = ScriptEngine::new(limits()).unwrap();
        let context = engine.context().unwrap();
        let ran = engine.call(&context, "x", |ctx| {
            let _: Value<'_> = ctx.eval(source.replace("kept =", "var kept ="))?;
            Ok(())
        });
        drop(ran);
        drop(context);
        assert_eq!(engine.objects_left(), 0, "{source}");
    }
}

#[test]
fn deep_recursion_ends_at_the_stack_limit() {
    for expression in [
        "(function f() { return f() + 1 })()",
        "var o = {}; o.toString = function () { return '' + o }; o",
        "var a = []; a[0] = a; var p = new Proxy({}, { get: function (t, k) { return p[k] } }); p.x",
        "JSON.parse('['.repeat(1e5))",
        "eval('('.repeat(1e5))",
    ] {
        let error = fail(expression, without_time_limit());
        assert!(matches!(error, ScriptError::StackLimit { .. }), "{expression}: {error}");
        assert!(error.to_string().contains("nest too deeply"));
    }
}

#[test]
fn limits_of_zero_are_raised_to_the_minimum() {
    let nothing = Limits { time: Duration::from_secs(2), memory: 0, stack: 0 };
    let mut scripts = ItemScripts::new(&page_facts(), nothing);
    assert_eq!(scripts.eval("[1, 2].join('-')"), Ok(Some("1-2".to_owned())));
    assert!(matches!(scripts.eval("'x'.repeat(2e6)"), Err(ScriptError::MemoryLimit { .. })));
    assert!(matches!(
        scripts.eval("(function f() { return f() + 1 })()"),
        Err(ScriptError::StackLimit { .. })
    ));
}

#[test]
fn a_panic_in_a_host_function_stays_inside() {
    let mut facts = page_facts();
    let mut run = (*facts.run).clone();
    run.date_text = std::sync::Arc::new(|_| panic!("a bug of ours"));
    facts.run = std::sync::Arc::new(run);
    let mut scripts = ItemScripts::new(&facts, limits());
    for expression in ["document.getFromDate()", "'' + document.getFromDate()"] {
        let error = scripts.eval(expression).unwrap_err();
        assert!(matches!(error, ScriptError::Engine { .. }), "{error}");
        assert_eq!(scripts.eval("1"), Ok(Some("1".to_owned())));
    }
}

#[test]
fn scripts_cannot_reach_the_host() {
    let mut scripts = ItemScripts::new(&page_facts(), limits());
    for name in [
        "require",
        "module",
        "exports",
        "define",
        "process",
        "fetch",
        "XMLHttpRequest",
        "setTimeout",
        "setInterval",
        "std",
        "os",
        "load",
        "Java",
        "java",
        "Packages",
        "WebAssembly",
        "Deno",
        "Worker",
    ] {
        let kind = scripts.eval(&format!("typeof {name}"));
        assert_eq!(kind, Ok(Some("undefined".to_owned())), "{name}");
    }
    assert!(scripts.eval("import fs from 'fs'").is_err());
    assert!(scripts.eval("export var x = 1").is_err());
    let refused = "var why = 'pending'; import('./x.js').then(function () { why = 'loaded' }, \
                   function () { why = 'refused' }); why";
    assert_eq!(scripts.eval(refused), Ok(Some("pending".to_owned())));
    assert_eq!(scripts.eval("why"), Ok(Some("refused".to_owned())));
    assert!(scripts.eval("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)").is_err());
}
