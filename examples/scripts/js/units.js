// A library that defines one global name, `units`.
(function (global) {
  "use strict";
  var FACTORS = { kn: 1852 / 3600, mph: 1609.344 / 3600, "m/s": 1 };

  function toMetresPerSecond(text) {
    var found = /^([0-9.]+)\s*(kn|mph|m\/s)$/.exec(text);
    return found ? Number(found[1]) * FACTORS[found[2]] : null;
  }

  global.units = { toMetresPerSecond: toMetresPerSecond };
})(this);
