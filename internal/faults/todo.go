package main

var pauses []scenario
var disks []scenario
var clocks []scenario
var garbages []scenario
