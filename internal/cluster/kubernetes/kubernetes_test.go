package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// TestDirectionsCutExactlyGivenLinks checks that the directions cut exactly the given cuts.
func TestDirectionsCutExactlyGivenLinks(t *testing.T) {
	cut := func(pairs ...int) (list []fault.Cut) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, fault.Cut{From: pairs[i], To: pairs[i+1]})
		}
		return list
	}
	for name, c := range map[string]struct {
		cuts  []fault.Cut
		count int
	}{
		"one from two":   {cut(0, 1, 0, 2, 1, 0, 2, 0), 2},
		"one way":        {cut(0, 1, 0, 2), 1},
		"each alone":     {cut(0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1), 3},
		"halves of four": {cut(0, 2, 0, 3, 1, 2, 1, 3, 2, 0, 2, 1, 3, 0, 3, 1), 2},
		"none":           {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got []fault.Cut
			list := directions(c.cuts)
			for _, d := range list {
				for _, from := range d.from {
					for _, to := range d.to {
						got = append(got, fault.Cut{From: from, To: to})
					}
				}
			}
			order := func(a, b fault.Cut) int { return 10*(a.From-b.From) + a.To - b.To }
			want := slices.Clone(c.cuts)
			slices.SortFunc(want, order)
			slices.SortFunc(got, order)
			if !slices.Equal(got, want) || len(list) != c.count {
				t.Errorf("%d directions cut %v, want %d that cut %v", len(list), got, c.count, want)
			}
		})
	}
}

// TestParametersRejectInvalidValues checks that valid parameters are read and invalid ones are refused by name.
func TestParametersRejectInvalidValues(t *testing.T) {
	k := &Kind{Name: "thing", Image: "example/thing", Version: "1", Disk: "1Gi", Settings: func(name, _ string) error {
		if name == "own" {
			return errors.New("the cluster sets it itself")
		}
		return nil
	}}
	read := func(query string) (*asked, error) {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		return k.read(cluster.Options{Nodes: 3, Params: values}, "v9")
	}
	a, err := read("namespace=bank&context=c&cpu=500m&memory=2Gi&disk=10Gi&storage-class=fast&version=2&wait=1m&pull=Never&set.x=y")
	if err != nil {
		t.Fatal(err)
	}
	if a.Namespace != "bank" || a.Context != "c" || a.Image != "example/thing:2" || a.wait != time.Minute || a.ToolImage != "stroppy:v9" || a.Pull != "Never" ||
		a.StorageClass != "fast" || !slices.Equal(a.Settings, [][2]string{{"x", "y"}}) {
		t.Errorf("it was read as %+v", a)
	}
	if got, want := fmt.Sprint(a.Resources()), "map[limits:map[cpu:500m memory:2Gi] requests:map[cpu:500m memory:2Gi]]"; got != want {
		t.Errorf("the resources are %s, want %s", got, want)
	}
	if got := fmt.Sprint(a.ClaimSpec()); !strings.Contains(got, "10Gi") || !strings.Contains(got, "fast") {
		t.Errorf("the volume claim is %s", got)
	}
	for query, wrong := range map[string]string{
		"cpu=many": "cpu", "memory=-1Gi": "memory", "disk=": "disk", "namespace=": "namespace", "pull=Often": "pull",
		"wait=soon": "wait", "reach=away": "reach", "bin=/usr/bin": "bin", "set.own=1": "set.own", "loopback=on": "loopback", "version=1&version=2": "version",
	} {
		_, err := read(query)
		var param *cluster.ParamError
		if !errors.As(err, &param) || param.Param != wrong {
			t.Errorf("%s: the error is %v, want one of the parameter %s", query, err, wrong)
		}
	}
}

// podAt returns a pod with an address and a UID.
func podAt(ip, uid string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.UID, p.Status.PodIP = "pod", types.UID(uid), ip
	return p
}

// TestRelayFollowsPresentPod checks that a relay connects to the present pod, that its connections end with the
// pod, and that it leaves none open.
func TestRelayFollowsPresentPod(t *testing.T) {
	serve := func(ip, greeting string) int {
		l, err := net.Listen("tcp", ip+":0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					_, _ = io.WriteString(c, greeting)
					_, _ = io.Copy(c, c)
				}()
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	port := serve("127.0.0.1", "a")
	var now *corev1.Pod
	r, err := (&API{}).newRelay(port, true, func() *corev1.Pod { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	if text, _ := io.ReadAll(dial()); len(text) > 0 {
		t.Errorf("without a pod somebody said %q", text)
	}
	if err := r.failure(); err == nil || !strings.Contains(err.Error(), "the pod does not exist") {
		t.Errorf("it does not say why: %v", err)
	}
	now = podAt("127.0.0.1", "1")
	c := dial()
	first := make([]byte, 4)
	if _, err := io.WriteString(c, "xyz"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, first); err != nil || string(first) != "axyz" {
		t.Errorf("the pod said %q, %v; want axyz", first, err)
	}
	r.cut()
	if _, err := c.Read(first); err == nil {
		t.Error("the connection goes on although its pod has ended")
	}
	again := dial()
	if _, err := io.ReadFull(again, first[:1]); err != nil {
		t.Errorf("the next pod is not reached: %v", err)
	}
	r.stop()
	if _, err := again.Read(first); err == nil {
		t.Error("the connection outlives the relay")
	}
	if _, err := net.Dial("tcp", r.address()); err == nil {
		t.Error("somebody listens yet")
	}
}

// TestProbeTellsRefusalFromSilence checks that a probe distinguishes a server that answers, refuses, or is silent.
// It must answer only requests with its token.
func TestProbeTellsRefusalFromSilence(t *testing.T) {
	server := httptest.NewServer(probing("secret"))
	t.Cleanup(server.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	ask := func(token, to string, count int) (dialed, int) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/dial?to="+url.QueryEscape(to)+"&count="+strconv.Itoa(count), nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var d dialed
		_ = json.NewDecoder(answer.Body).Decode(&d)
		return d, answer.StatusCode
	}
	if d, code := ask("secret", l.Addr().String(), 3); code != http.StatusOK || len(d.Times) != 3 || d.Lost > 0 || d.Error != "" {
		t.Errorf("of a server that answers it says %+v", d)
	}
	if d, _ := ask("secret", closed.Addr().String(), 1); d.Error == "" || len(d.Times) > 0 {
		t.Errorf("of a server that refuses it says %+v", d)
	}
	for _, query := range []string{"to=n0&rate=1&first=1", "to=127.0.0.1&rate=0&first=1", "to=127.0.0.1&rate=1", "to=127.0.0.1&rate=99999999999&first=1", "to=127.0.0.1&rate=1&first=-1"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/echo?"+query, nil)
		r.Header.Set("Authorization", "Bearer secret")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("who asks for echoes of %s gets %d", query, answer.StatusCode)
		}
	}
	if _, code := ask("other", l.Addr().String(), 1); code != http.StatusForbidden {
		t.Errorf("who has another token gets %d", code)
	}
	if _, code := ask("secret", l.Addr().String(), lossTries+1); code != http.StatusBadRequest {
		t.Errorf("who asks for too much gets %d", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := dialAll(ctx, l.Addr().String(), 1); len(d.Times) > 0 {
		t.Errorf("after its end it says %+v", d)
	}
}

// TestDegradedLinkIsRecognized checks when a link counts as worse than before.
func TestDegradedLinkIsRecognized(t *testing.T) {
	ms := time.Millisecond
	round := func(sent, lost int, median time.Duration) measured {
		return measured{sent: sent, lost: lost, median: median}
	}
	echoes := func(asked, came, count int64) measured {
		return measured{asked: asked, came: came, echoes: count}
	}
	if err := echoes(2000, 1900, 19).wide(1000); err != nil {
		t.Error(err)
	}
	if echoes(2000, 1050, 10).wide(1000) == nil || echoes(1100, 1100, 11).wide(1000) == nil {
		t.Error("a link counts as one that lets more through than anybody saw")
	}
	for _, c := range []struct {
		before, now measured
		link        fault.Link
		worse       bool
	}{
		{round(5, 0, ms), round(5, 0, 101*ms), fault.Link{Delay: 100 * ms}, true},
		{round(5, 0, ms), round(5, 0, 30*ms), fault.Link{Delay: 100 * ms}, false},
		{round(5, 0, ms), round(5, 0, 70*ms), fault.Link{Delay: 100 * ms, Jitter: 40 * ms}, true},
		{round(200, 0, ms), round(200, 12, ms), fault.Link{Loss: 0.1}, true},
		{round(200, 0, ms), round(200, 0, ms), fault.Link{Loss: 0.1}, false},
		{echoes(2000, 2000, 20), echoes(2000, 1050, 10), fault.Link{Bandwidth: 1000}, true},
		{echoes(2000, 2000, 20), echoes(2000, 300, fewestEchoes), fault.Link{Bandwidth: 1000}, true},
		{echoes(2000, 2000, 20), echoes(2000, 300, fewestEchoes-1), fault.Link{Bandwidth: 1000}, false}, // as of a node that is cut off
		{echoes(2000, 2000, 20), echoes(2000, 0, 0), fault.Link{Bandwidth: 1000}, false},
		{echoes(2000, 2000, 20), echoes(2000, 1400, 14), fault.Link{Bandwidth: 1000}, false},
		{echoes(2000, 2000, 20), echoes(1100, 1000, 10), fault.Link{Bandwidth: 1000}, false}, // too little was offered
	} {
		if got := c.now.worse(c.before, c.link) == nil; got != c.worse {
			t.Errorf("%v after %v with %+v: worse is %v", c.now, c.before, c.link, got)
		}
	}
}
