mod fields;
