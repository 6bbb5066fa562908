// Built without Chart.js: the page says so where a chart would be.
