// Called with the data of one page; what it returns goes on to the next step.
function execute(data) {
  var rows = data.getItems();
  // From the end, since rows are taken out on the way.
  for (var i = rows.size() - 1; i >= 0; i--) {
    var row = rows.get(i);
    var wind = units.toMetresPerSecond(row.getValue("fact"));
    if (wind === null) {
      // No reading, no row.
      data.removeItem(row);
    } else {
      row.setValue("fact", wind.toFixed(1) + " m/s");
    }
  }
  return data;
}
