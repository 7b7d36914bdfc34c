package tenant

import "testing"

// A tab whose new socket comes before it could say that it left takes its old channel
// with it all the same.
func TestChannelEndsWhenItsLastTabMoves(t *testing.T) {
	r := NewRegistry(Options{})
	defer r.Close()
	for _, channel := range []string{"one", "two"} {
		if _, err := r.Join(Connect{Channel: channel, Name: "App"}, Joining{Instance: "tab-1", Transport: &fakePage{}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := r.Channel("one"); ok {
		t.Error("the old channel is still there")
	}
	if _, ok := r.Channel("two"); !ok {
		t.Error("the new channel is not there")
	}
}
