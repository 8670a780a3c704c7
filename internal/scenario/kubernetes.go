package scenario

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// InKubernetes begins the names of the kinds of clusters that are started in Kubernetes.
const InKubernetes = "k8s/"

// inKubernetes has the cluster started in Kubernetes, if asked, and writes the resources of its
// nodes there into its parameters. One that the parameters name already stays.
func (s *Scenario) inKubernetes() error {
	there := strings.HasPrefix(s.Cluster, InKubernetes)
	switch {
	case s.Kubernetes && s.Cluster == "":
		return errors.New("kubernetes is on and there is no cluster to start: name its kind with --cluster, as `stroppy list clusters` shows them")
	case s.Kubernetes && !there:
		s.Cluster = InKubernetes + s.Cluster
	case !there:
		return nil
	}
	_, params, given := strings.Cut(s.Cluster, "?")
	named := map[string]bool{}
	for param := range strings.SplitSeq(params, "&") {
		name, _, _ := strings.Cut(param, "=")
		named[name] = true
	}
	for one := range strings.SplitSeq(s.Resources, ",") {
		if name, _, _ := strings.Cut(one, "="); name == "" || named[name] {
			continue
		}
		if given {
			s.Cluster += "&" + one
		} else {
			s.Cluster, given = s.Cluster+"?"+one, true
		}
	}
	s.Kubernetes, s.Resources = false, ""
	return nil
}

// parseResources returns the resources in their text form, or an error.
func parseResources(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	seen := map[string]bool{}
	for one := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(one, "=")
		switch _, known := leastResources[name]; {
		case !known:
			return "", fmt.Errorf("%q is none of %s, each with an amount, such as cpu=1,memory=8G,disk=100G", name, strings.Join(slices.Sorted(maps.Keys(leastResources)), ", "))
		case seen[name]:
			return "", fmt.Errorf("it names %s twice", name)
		case quantity.FindString(amount) == "":
			return "", fmt.Errorf("%s is %q: it must be an amount, such as 2, 500m or 8G", name, amount)
		}
		seen[name] = true
	}
	return text, nil
}

// quantity matches an amount in the form of Kubernetes.
var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`)

// units holds the factor of each unit of an amount.
var units = map[string]float64{
	"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50,
}

// dividedResources divides the resources of each node in a cluster's text. Other parameters, such as memory=on, stay.
func dividedResources(text string, factor float64) string {
	name, params, found := strings.Cut(text, "?")
	if !found {
		return text
	}
	list := strings.Split(params, "&")
	for i, param := range list {
		key, value, _ := strings.Cut(param, "=")
		least, of := leastResources[key]
		parts := quantity.FindStringSubmatch(value)
		if !of || parts == nil {
			continue
		}
		amount, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			continue
		}
		unit := units[parts[2]]
		if divided := max(least, amount*unit/factor); divided < amount*unit {
			list[i] = key + "=" + amountText(divided, unit, parts[2])
		}
	}
	return name + "?" + strings.Join(list, "&")
}

// amountText writes an amount in its unit, or in thousandths of it where it is no whole number.
func amountText(amount, unit float64, letters string) string {
	if n := amount / unit; n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', -1, 64) + letters
	}
	switch {
	case letters == "" && amount >= 1e3: // bytes
		return strconv.FormatFloat(math.Ceil(amount), 'f', -1, 64)
	case letters == "", letters == "m":
		return strconv.FormatFloat(math.Ceil(amount*1e3), 'f', -1, 64) + "m"
	}
	return strconv.FormatFloat(math.Ceil(amount/1e6), 'f', -1, 64) + "M"
}
