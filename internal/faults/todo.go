package main

var clocks []scenario
var garbages []scenario
