// Receives the data of one page. The next step receives what it returns.
function execute(data) {
  var rows = data.getItems();
  // Backwards, because rows are removed in the loop.
  for (var i = rows.size() - 1; i >= 0; i--) {
    var row = rows.get(i);
    var wind = units.toMetresPerSecond(row.getValue("fact"));
    if (wind === null) {
      // A row without a reading is dropped.
      data.removeItem(row);
    } else {
      row.setValue("fact", wind.toFixed(1) + " m/s");
    }
  }
  return data;
}
