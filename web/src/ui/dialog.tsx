import * as Radix from "@radix-ui/react-dialog";
import { Button } from "./button";

type Props = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: React.ReactNode;
  wide?: boolean;
  children?: React.ReactNode;
  footer?: React.ReactNode;
};

const FIELDS = "form input:not([type=file]), form textarea, form select";

export function Dialog({ open, onClose, title, description, wide, children, footer }: Props) {
  return (
    <Radix.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[rgb(10_10_15/45%)]" />
        <Radix.Content
          // A field, not the button that closes.
          onOpenAutoFocus={(event) => {
            const field = (event.currentTarget as HTMLElement | null)?.querySelector<HTMLElement>(FIELDS);
            if (!field) return;
            event.preventDefault();
            field.focus();
          }}
          {...(description ? {} : { "aria-describedby": undefined })}
          className={`fixed top-[12vh] left-1/2 z-50 flex max-h-[78vh] w-[calc(100vw-32px)] ${wide ? "max-w-3xl" : "max-w-lg"} -translate-x-1/2 animate-appear flex-col rounded-xl border border-line bg-raised shadow-pop`}
        >
          <div className="flex items-start justify-between gap-4 px-5 pt-4">
            <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <Button look="ghost" icon="close" aria-label="Close" className="-mt-1 -mr-2" />
            </Radix.Close>
          </div>
          {description && <Radix.Description className="px-5 pt-1 text-dim">{description}</Radix.Description>}
          <div className="min-h-0 overflow-auto px-5 py-4">{children}</div>
          {footer && <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-5 py-3">{footer}</div>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
