import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "build.mjs"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Numbers print as one expects; only objects and undefined slip by unnoticed.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "no-console": "error",
    },
  },
  {
    files: ["**/*.test.ts"],
    // node:test collects what `test` and `describe` return by itself.
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
);
