package main

var clocks []scenario
