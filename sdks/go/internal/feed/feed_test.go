package feed

import "testing"

func drained(s *Subscription) (taken []Change, ended bool) {
	for {
		select {
		case change, open := <-s.Changes:
			if !open {
				return taken, true
			}
			taken = append(taken, change)
		default:
			return taken, false
		}
	}
}

func TestAllSubscribersReceiveTheSameInOrder(t *testing.T) {
	f := New()
	f.Publish([]Change{{Path: "before"}})
	one, two := f.Subscribe(), f.Subscribe()
	f.Publish([]Change{{Path: "a"}, {Path: "b"}})
	f.Publish([]Change{{Path: "c"}})
	first, _ := drained(one)
	second, _ := drained(two)
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("%+v, %+v", first, second)
	}
	for i, path := range []string{"a", "b", "c"} {
		if first[i] != second[i] || first[i].Path != path || first[i].When.IsZero() {
			t.Errorf("%+v, %+v", first[i], second[i])
		}
		if i > 0 && first[i].ID <= first[i-1].ID {
			t.Errorf("%d follows %d", first[i].ID, first[i-1].ID)
		}
	}
}

func TestStalledSubscriberIsEndedAndBlocksNobody(t *testing.T) {
	f := New()
	slow, quick := f.Subscribe(), f.Subscribe()
	for n := range 2 * queueLimit {
		f.Publish([]Change{{Path: "a"}})
		if _, ended := drained(quick); ended {
			t.Fatalf("the quick one was ended at %d", n)
		}
	}
	if taken, ended := drained(slow); len(taken) != queueLimit || !ended {
		t.Errorf("%d, ended %v", len(taken), ended)
	}
	slow.Cancel()
}

func TestLargeBatchAloneEndsNoStream(t *testing.T) {
	f := New()
	s := f.Subscribe()
	f.Publish(make([]Change, queueLimit-1))
	f.Publish(make([]Change, commitLimit))
	if taken, ended := drained(s); len(taken) != queueLimit-1+commitLimit || ended {
		t.Errorf("%d, ended %v", len(taken), ended)
	}
}

func TestEndComesAfterTheLastChange(t *testing.T) {
	f := New()
	s, left := f.Subscribe(), f.Subscribe()
	left.Cancel()
	f.Publish([]Change{{Path: "a"}})
	f.Close()
	left.Cancel()
	if taken, ended := drained(s); len(taken) != 1 || !ended {
		t.Errorf("%+v, ended %v", taken, ended)
	}
	if len(f.subscribers) != 0 {
		t.Error("subscribers are left")
	}
}
