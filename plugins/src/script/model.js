// The data as scripts use it: objects with the getters of Java over private fields, so that scripts
// cannot break them. A list is an array that also has the methods of a Java list.
(function (dateText, runDate) {
    'use strict';

    const KINDS = ['item', 'dim', 'fact'];

    function kindOf(kind) {
        const name = String(kind).toLowerCase();
        if (!KINDS.includes(name)) {
            throw new TypeError('there is no axis `' + kind + '`: use item, dim or fact');
        }
        return name;
    }

    // `instanceof` would fail for a date from the global object of another plugin.
    const getTime = Date.prototype.getTime;

    function millisOf(value) {
        try {
            return getTime.call(value);
        } catch (error) {
            return NaN;
        }
    }

    function textOf(value) {
        if (value === null || value === undefined) {
            return null;
        }
        if (typeof value === 'object') {
            const text = dateText(millisOf(value));
            if (typeof text === 'string') {
                return text;
            }
        }
        return String(value).toWellFormed();
    }

    function countOf(value, what) {
        if (value === null || value === undefined) {
            return null;
        }
        const count = Number(value);
        if (!Number.isInteger(count) || count < 0 || count > 4294967295) {
            throw new TypeError(what + ' must be a whole number from 0, not `' + value + '`');
        }
        return count;
    }

    class List extends Array {
        size() { return this.length; }
        isEmpty() { return this.length === 0; }
        get(index) {
            if (!(index >= 0 && index < this.length)) {
                throw new RangeError('index ' + index + ' of a list of ' + this.length);
            }
            return this[index];
        }
        set(index, value) {
            const old = this.get(index);
            this[index] = value;
            return old;
        }
        add(value) { this.push(value); return true; }
        addAll(values) { this.push(...values); return true; }
        contains(value) { return this.includes(value); }
        clear() { this.length = 0; }
        // As in Java, a number is an index and any other value is an element.
        remove(what) {
            if (typeof what === 'number') {
                const old = this.get(what);
                this.splice(what, 1);
                return old;
            }
            const index = this.indexOf(what);
            if (index >= 0) {
                this.splice(index, 1);
            }
            return index >= 0;
        }
        iterator() {
            let next = 0;
            return { hasNext: () => next < this.length, next: () => this.get(next++) };
        }
    }

    class Dictionary extends Map {
        size() { return [...this.keys()].length; }
        isEmpty() { return this.size() === 0; }
        containsKey(key) { return this.has(key); }
        keySet() { return List.from(this.keys()); }
        put(key, value) { this.set(key, value); }
    }

    let writeAxis, writeRow, rowList;

    class Axis {
        #kind; #itemName; #value; #match; #index; #order;
        constructor(kind, itemName, value, match, index, order) {
            this.#kind = kind;
            this.#itemName = itemName;
            this.#value = value;
            this.#match = match;
            this.#index = index;
            this.#order = order;
        }
        getAxisName() { return this.#kind; }
        getItemName() { return this.#itemName; }
        getValue() { return this.#value; }
        setValue(value) { this.#value = textOf(value); }
        getMatch() { return this.#match; }
        setMatch(match) { this.#match = textOf(match); }
        getIndex() { return this.#index; }
        setIndex(index) { this.#index = countOf(index, 'index'); }
        getOrder() { return this.#order; }
        setOrder(order) { this.#order = countOf(order, 'order'); }
        copy() {
            return new Axis(this.#kind, this.#itemName, this.#value, this.#match, this.#index,
                this.#order);
        }
        toString() { return this.#kind + ' ' + this.#itemName + ' = ' + this.#value; }
        static isAxis(thing) { return Object(thing) === thing && #kind in thing; }
        static {
            writeAxis = (axis, cells) => cells.push(axis.#kind, axis.#itemName, axis.#value,
                axis.#match, axis.#index, axis.#order);
        }
    }

    class Row {
        #name; #group; #axes; #parent;
        constructor(name, group, axes, parent) {
            this.#name = name;
            this.#group = group;
            this.#axes = axes;
            this.#parent = parent;
        }
        getName() { return this.#name; }
        setName(name) { this.#name = textOf(name) ?? ''; }
        getGroup() { return this.#group; }
        setGroup(group) { this.#group = textOf(group) ?? ''; }
        getParent() { return this.#parent; }
        getAxes() { return this.#axes; }
        getAxis(kind) {
            const name = kindOf(kind);
            return this.#axes.find(axis => axis.getAxisName() === name) ?? null;
        }
        getAxisByItemName(name) {
            return this.#axes.find(axis => axis.getItemName() === name) ?? null;
        }
        getFirstAxis() { return this.#axes[0] ?? null; }
        getItemNames() { return List.from(this.#axes, axis => axis.getItemName()); }
        getAxisMap() { return new Dictionary(this.#axes.map(axis => [axis.getItemName(), axis])); }
        getValue(kind) { return this.#theAxis(kind).getValue(); }
        setValue(kind, value) { this.#theAxis(kind).setValue(value); }
        addAxis(axis) {
            if (!Axis.isAxis(axis)) {
                throw new TypeError('addAxis takes an axis');
            }
            this.#axes.push(axis);
        }
        copy() {
            return new Row(this.#name, this.#group, List.from(this.#axes, axis => axis.copy()),
                this.#parent);
        }
        toString() { return 'row of ' + this.#name + ': ' + this.#axes.join(', '); }
        #theAxis(kind) {
            const axis = this.getAxis(kind);
            if (axis === null) {
                throw new TypeError('the row has no axis `' + kind + '`');
            }
            return axis;
        }
        static isRow(thing) { return Object(thing) === thing && #axes in thing; }
        static {
            writeRow = (row, cells) => {
                cells.push(row.#name, row.#group, row.#axes.length);
                for (const axis of row.#axes) {
                    if (!Axis.isAxis(axis)) {
                        throw new TypeError('the list of axes contains a value that is not an axis');
                    }
                    writeAxis(axis, cells);
                }
            };
            rowList = (rows, parent) => List.from(rows, row => {
                if (!Row.isRow(row)) {
                    throw new TypeError('the list of items contains a value that is not a row');
                }
                if (parent) {
                    row.#parent = parent;
                }
                return row;
            });
        }
    }

    class Data {
        #name; #dataDef; #tags; #rows;
        constructor(name, dataDef, tags) {
            this.#name = name;
            this.#dataDef = dataDef;
            this.#tags = tags;
            this.#rows = new List();
        }
        getName() { return this.#name; }
        getDataDef() { return this.#dataDef; }
        getRunDate() { return runDate(); }
        getItems() { return this.#rows; }
        setItems(rows) { this.#rows = rowList(rows, this); }
        addItem(row) { this.#rows.push(...rowList([row], this)); }
        removeItem(row) { return this.#rows.remove(row); }
        getTagValue(key) { return this.#tags.get(textOf(key)) ?? null; }
        addTag(key, value) { this.#tags.set(textOf(key), textOf(value) ?? ''); }
        copy() {
            const copy = new Data(this.#name, this.#dataDef, new Map(this.#tags));
            copy.setItems(this.#rows.map(row => row.copy()));
            return copy;
        }
        toString() { return 'data ' + this.#name + ' of ' + this.#rows.length + ' rows'; }
        static write(data) {
            const cells = [];
            for (const row of rowList(data.#rows)) {
                writeRow(row, cells);
            }
            return [data.#name, data.#dataDef, [...data.#tags].flat(), cells];
        }
        static isData(thing) { return Object(thing) === thing && #dataDef in thing; }
    }

    // Scripts written for Nashorn also use `axis.value` for getValue and setValue.
    for (const { prototype } of [Axis, Row, Data]) {
        for (const method of Object.getOwnPropertyNames(prototype)) {
            if (!method.startsWith('get') || prototype[method].length > 0) {
                continue;
            }
            const name = method.slice(3);
            const setter = prototype['set' + name];
            Object.defineProperty(prototype, name[0].toLowerCase() + name.slice(1), {
                configurable: true,
                get() { return this[method](); },
                set: setter && function (value) { setter.call(this, value); },
            });
        }
    }

    function describe(thing) {
        if (Array.isArray(thing)) {
            return 'a list';
        }
        if (typeof thing === 'object') {
            return Row.isRow(thing) ? 'a row' : Axis.isAxis(thing) ? 'an axis' : 'an object';
        }
        return 'a ' + typeof thing;
    }

    return {
        pack(name, dataDef, tags, cells) {
            const data = new Data(name, dataDef, new Map());
            for (let i = 0; i < tags.length; i += 2) {
                data.addTag(tags[i], tags[i + 1]);
            }
            const rows = data.getItems();
            for (let at = 0; at < cells.length;) {
                const axes = new List();
                rows.push(new Row(cells[at], cells[at + 1], axes, data));
                const end = at + 3 + 6 * cells[at + 2];
                for (at += 3; at < end; at += 6) {
                    axes.push(new Axis(cells[at], cells[at + 1], cells[at + 2], cells[at + 3],
                        cells[at + 4], cells[at + 5]));
                }
            }
            return data;
        },
        unpack(thing) {
            return Data.isData(thing) ? Data.write(thing) : describe(thing);
        },
    };
})
