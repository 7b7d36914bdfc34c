package main

var disks []scenario
var clocks []scenario
var garbages []scenario
