import type { ButtonHTMLAttributes, Ref } from "react";
import { classes } from "../lib/classes";
import { Icon, type IconName } from "./icon";

type Props = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: "plain" | "primary" | "danger" | "ghost";
  icon?: IconName;
  ref?: Ref<HTMLButtonElement>;
};

const LOOKS = {
  plain: "border border-line-strong bg-raised hover:bg-hover text-text",
  primary: "bg-accent text-on-accent hover:brightness-110 border border-transparent",
  danger: "border border-line-strong bg-raised text-bad hover:bg-bad-bg",
  ghost: "border border-transparent text-dim hover:bg-hover hover:text-text",
};

export function Button({ look = "plain", icon, className, children, type = "button", ...rest }: Props) {
  return (
    <button
      type={type}
      className={classes(
        "inline-flex h-7 shrink-0 items-center justify-center gap-1.5 rounded-md text-sm font-medium whitespace-nowrap select-none disabled:opacity-45",
        children ? "px-2.5" : "w-7",
        LOOKS[look],
        className,
      )}
      {...rest}
    >
      {icon && <Icon name={icon} size={14} />}
      {children}
    </button>
  );
}
