package patch_test

import (
	"fmt"

	"handoff/gitops/patch"
)

// A diff without line numbers, whose context is not quite right.
func ExampleApply() {
	source := []byte("func greet() {\n\tname := ask(\"name?\")\n\tlog(name)\n\tprint(name)\n}\n")
	result, err := patch.Apply(source, `@@
 func greet() {
 	name := ask("nam?")
 	log(name)
-	print(name)
+	print("hello, " + name)
 }
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s%v\n", result.Text, result.Hunks[0].Notes[0])
	// Output:
	// func greet() {
	// 	name := ask("name?")
	// 	log(name)
	// 	print("hello, " + name)
	// }
	// context line "name := ask(\"nam?\")" was taken for "name := ask(\"name?\")"
}

// A refusal shows what the file says, so that the next diff can be right.
func ExampleError() {
	_, err := patch.Apply([]byte("one\ntwo\nthree\n"), "@@\n one\n-too\n+2\n")
	fmt.Println(err)
	// Output:
	// no_match: Nothing was changed. Its old lines are not in the file. They come closest at line 1, where 1 of 2 match. The first that differs:
	//   your line 2 of the old side: "too"
	//   line 2 of the file:        "two"
	// The file there, to copy the context from:
	//      1	one
	//      2	two
	//      3	three
}

func ExampleEdit() {
	_, err := patch.Edit([]byte("a := 1\nb := 1\n"), "1", "2", 1, false)
	fmt.Println(err.(*patch.Error).Code)
	result, _ := patch.Edit([]byte("a := 1\nb := 1\n"), "b := 1", "b := 2", 1, false)
	fmt.Printf("%s", result.Text)
	// Output:
	// ambiguous
	// a := 1
	// b := 2
}
